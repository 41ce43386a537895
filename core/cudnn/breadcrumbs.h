// The GPU leaves breadcrumbs: it writes to host memory which mark in its stream it has passed. CUDA
// reports a failed kernel only in a later call, when the host is layers ahead, so the last mark
// tells in which layer the GPU failed.
#pragma once
#include <array>
#include <cstdint>
#include <string>

#include "core/cudnn/context.h"
#include "core/cudnn/driver.h"

namespace duplex::cudnn {

class Breadcrumbs {
 public:
  explicit Breadcrumbs(const Context& context);

  /// Says that the work asked for from now on belongs to `name`, a layer.
  void mark(const std::string& name);
  /// Returns the name of the mark that the GPU passed last. Returns an empty name where the GPU has
  /// passed none, or where the driver cannot write marks.
  std::string last() const;

 private:
  const Context& context_;
  WriteValue write_;
  Buffer memory_;                   ///< One number in host memory, which the GPU writes.
  unsigned long long address_ = 0;  ///< Its address on the GPU; 0 where the driver has no marks.
  std::uint32_t marks_ = 0;
  std::array<std::string, 4096> names_;  ///< Names of the last marks, more than a stream queues.
};

}  // namespace duplex::cudnn
