// Checks what an engine of cuDNN has computed. Some engines that cuDNN proposes compute something
// else for some graphs: with cuDNN 9.14 on an H200, gradients of weights of convolutions whose
// padding differs on opposite sides, and the last elements of bfloat16 convolutions over whole
// maps.
#pragma once
#include <vector>

#include "core/cudnn/context.h"
#include "core/cudnn/engines/graph.h"
#include "core/cudnn/kernels/view.h"

namespace duplex::cudnn {

/// Some hundred elements of a graph's result, among them the first and the last ones of every
/// extent, where engines go wrong.
class Sample {
 public:
  /// Computes these elements as the equations are written, in double, on the GPU. The inputs of the
  /// graph have their values; the result need not have any.
  Sample(const Context& context, const ConvGraph& graph, const ConvMemory& memory);

  /// Fills the result with NaN, for an engine to overwrite.
  void poison() const;
  /// Returns whether the result has these elements, but for the rounding that the precision allows.
  /// Waits for the device.
  bool agrees() const;

 private:
  /// Returns the elements `at` of a tensor.
  std::vector<float> collected(const View& view, const void* from, const Buffer& at) const;

  const Context& context_;
  View result_;
  void* memory_;               ///< Of the result.
  Buffer at_;                  ///< Coordinates of the elements.
  std::vector<double> exact_;  ///< By element.
};

}  // namespace duplex::cudnn
