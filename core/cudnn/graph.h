// Convolutions as graphs of cuDNN's backend interface, which versions 8 and 9 share.
#pragma once
#include <cstdint>
#include <string>

#include "core/cudnn/descriptor.h"
#include "core/operations.h"

namespace duplex::cudnn {

/// Numbers that stand for the memory of tensors. What only the next node reads has no memory.
enum Number : std::int64_t { x_number = 1, weights_number, y_number, bias_number, inner_number };

enum class Direction { forward, data, weights };

/// What a graph computes: y from x and weights, or dx from dy and weights, or dweights from dy and
/// x, a gradient in the place of what it is the gradient of. Forward may add a bias and apply
/// (2.3). Sums are float32 whatever the tensors are.
struct ConvGraph {
  Direction direction = Direction::forward;
  Window window;
  View x, weights, y;
  bool bias = false, relu = false;

  /// Of y's type: for another cuDNN has few engines or none.
  View bias_view() const { return {1, y.c, 1, 1, y.order, y.type}; }
  std::string key() const;  ///< Equal for equal graphs.
};

/// What is to compute: the GPU of a handle or, to ask without one, a GPU that is described (cuDNN
/// 9.8 and later, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR).
struct Target {
  cudnnHandle_t handle = nullptr;
  Descriptor described;
};

/// The graph itself, and in `parts` what it refers to, which has to live as long.
Descriptor describe(const Target& target, const ConvGraph& graph, Descriptors& parts);

}  // namespace duplex::cudnn
