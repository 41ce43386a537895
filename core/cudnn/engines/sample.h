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

/// Returns the largest error that rounding may make. Sums round far less in float32, inputs of
/// tensor cores about 3e-4, and results in bfloat16 about 2e-3. One wrong element in a sample makes
/// 4e-2, or more.
double allowed_error(Precision precision);

/// Some hundred elements of a graph's result, among them the first and the last ones of every
/// extent, where engines go wrong.
class Sample {
 public:
  /// Computes these elements as the equations are written, in double, on the GPU. The inputs of the
  /// graph have their values; the result need not have any.
  Sample(const Context& context, const ConvGraph& graph, const ConvMemory& memory);

  /// Fills the result with NaN, for an engine to overwrite.
  void poison() const;
  /// Returns the error of the result's elements: its norm over the norm of the exact ones, or
  /// infinity where an element is not finite. Waits for the device.
  double error() const;

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
