// The sizes of a GPU's tensors and operations, on a machine that need not have one.
#pragma once
#include <cstddef>
#include <memory>

#include "core/device.h"

namespace duplex::tools {

/// GpuMemory is what the device of GPUs takes for itself beside tensors, as far as it is known
/// without one.
struct GpuMemory {
  std::size_t kept = 0;     ///< What operations keep from forward to backward.
  std::size_t staging = 0;  ///< Tensors that an operation wants in another layout or type.
  std::size_t rounded = 0;  ///< Copies of weights that operations read rounded.
  std::size_t copies = 0;   ///< The largest piece of a parameter that is copied by pieces.
};

/// This device gives operations the sizes that they have on a GPU in this precision and layout
/// (core/cudnn), and cannot run them.
class GpuSizes {
 public:
  GpuSizes(Precision precision, bool channels_last);
  ~GpuSizes();
  Device& device();
  /// Returns what the operations made so far take.
  const GpuMemory& memory() const;

  /// Returns the bytes that an engine of cuDNN may take beside the tensors, on a GPU of so much
  /// memory.
  static std::size_t workspace_limit(std::size_t gpu_bytes);

 private:
  class Sizes;
  std::unique_ptr<Sizes> sizes_;
};

}  // namespace duplex::tools
