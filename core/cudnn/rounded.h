// Keeps weights in bfloat16 beside the float32 ones that the optimiser has, so that no operation
// has to round them.
#pragma once
#include <cstddef>
#include <map>
#include <memory>

#include "core/cudnn/kernels/bfloat16.h"
#include "core/tensor.h"

namespace duplex::cudnn {

class Context;

/// A copy is never behind: whatever writes float32 weights writes their copy right after, in the
/// same stream. The thread that asks the GPU for operations uses it.
class RoundedWeights {
 public:
  /// Keeps a copy of a plain block from now on, as Device::keep_rounded says. Throws OutOfMemory.
  std::shared_ptr<void> keep(const Context& context, const Tensor& block);
  /// Returns the copy of the weights from these on, which have the same order, or null where they
  /// lie in no block that is kept. A copy is aligned half as far as the weights are.
  BFloat16* of(const float* weights) const;
  /// Has the copy of `changed` follow, where there is one, behind what the context's stream has.
  void follow(const Context& context, const Tensor& changed) const;

 private:
  struct Copy {
    std::size_t count = 0;
    Buffer memory;
  };
  using Copies = std::map<const float*, Copy>;  ///< By the first element of the block.

  /// Blocks that are kept may outlive this.
  std::shared_ptr<Copies> copies_ = std::make_shared<Copies>();
};

}  // namespace duplex::cudnn
