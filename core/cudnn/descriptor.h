// Descriptors of cuDNN's backend interface. They are made, given attributes one by one, then
// finished.
#pragma once
#include <cudnn_backend.h>

#include <cstdint>
#include <vector>

#include "core/cudnn/context.h"

namespace duplex::cudnn {

using Descriptor = Handle<cudnnBackendDescriptor_t>;
using Descriptors = std::vector<Descriptor>;

inline Descriptor make(cudnnBackendDescriptorType_t type) {
  cudnnBackendDescriptor_t made = nullptr;
  check(cudnnBackendCreateDescriptor(type, &made), "describing a convolution");
  return Descriptor(made);
}

template <class Value>
void set(const Descriptor& descriptor, cudnnBackendAttributeName_t name,
         cudnnBackendAttributeType_t type, const Value* values, std::int64_t count) {
  check(cudnnBackendSetAttribute(descriptor.get(), name, type, count, values),
        "describing a convolution");
}
template <class Value>
void set(const Descriptor& descriptor, cudnnBackendAttributeName_t name,
         cudnnBackendAttributeType_t type, const Value& value) {
  set(descriptor, name, type, &value, 1);
}
inline void set(const Descriptor& descriptor, cudnnBackendAttributeName_t name,
                const Descriptor& value) {
  const cudnnBackendDescriptor_t raw = value.get();
  set(descriptor, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, raw);
}

inline void finish(const Descriptor& descriptor) {
  check(cudnnBackendFinalize(descriptor.get()), "describing a convolution");
}

}  // namespace duplex::cudnn
