// Descriptors of the backend interface, as the stand-in keeps them.
#pragma once
#include <cudnn_backend.h>

#include <cstring>
#include <map>
#include <vector>

namespace duplex::stand_in {

/// The attributes as they were set, as bytes of whatever type.
struct Described {
  cudnnBackendDescriptorType_t type{};
  std::map<cudnnBackendAttributeName_t, std::vector<char>> attributes;
  int engine = 0;  ///< The number of an engine; its configuration has it, too.

  template <class Value>
  std::vector<Value> all(cudnnBackendAttributeName_t name) const {
    const auto found = attributes.find(name);
    if (found == attributes.end()) return {};
    std::vector<Value> values(found->second.size() / sizeof(Value));
    std::memcpy(values.data(), found->second.data(), values.size() * sizeof(Value));
    return values;
  }
  template <class Value>
  Value one(cudnnBackendAttributeName_t name) const {
    return all<Value>(name).at(0);
  }
  const Described& part(cudnnBackendAttributeName_t name) const {
    return *static_cast<const Described*>(one<cudnnBackendDescriptor_t>(name));
  }
};

struct Names {
  cudnnBackendAttributeName_t convolution, x, weights, y, alpha, beta;
};
/// Returns the attributes of a node of a convolution, or of one of its gradients.
Names names_of(cudnnBackendDescriptorType_t node);
/// Returns the nodes of a graph, the convolution first.
std::vector<const Described*> nodes_of(const Described& graph);

}  // namespace duplex::stand_in
