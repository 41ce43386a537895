// Describes convolutions as operation graphs of cuDNN's backend interface, which versions 8 and 9
// share.
#pragma once
#include <cstdint>
#include <string>

#include "core/cudnn/descriptor.h"
#include "core/operations.h"

namespace duplex::cudnn {

/// Unique ids that stand for the memory of tensors. A tensor that only the next node reads is
/// virtual: it has no memory.
enum TensorId : std::int64_t { x_id = 1, weights_id, y_id, bias_id, inner_id };

enum class Direction { forward, data, weights };

/// A graph computes y from x and weights, or dx from dy and weights, or dweights from dy and x. A
/// gradient stands in the place of its tensor: `x` describes dx, too. Forward may add a bias and
/// apply ReLU (2.3). Sums are float32 whatever type the tensors have.
struct ConvGraph {
  Direction direction = Direction::forward;
  Window window;
  View x, weights, y;
  bool bias = false, relu = false;

  /// The bias has y's type: for another one cuDNN has few engines or none.
  View bias_view() const { return {1, y.c, 1, 1, y.order, y.type}; }
  std::string key() const;  ///< Equal graphs have equal keys.
  /// "gradient of weights of a convolution (3x3, stride 2, padding 0, 0, 1, 1)".
  std::string text() const;
};

/// The memory of the tensors of a ConvGraph. `bias` is null where the graph has none.
struct ConvMemory {
  void *x = nullptr, *weights = nullptr, *y = nullptr, *bias = nullptr;

  bool operator==(const ConvMemory& other) const {
    return x == other.x && weights == other.weights && y == other.y && bias == other.bias;
  }
};

/// The GPU that is to compute: that of a handle or, to ask without a GPU, one that is described
/// (cuDNN 9.8 and later, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR).
struct Target {
  cudnnHandle_t handle = nullptr;
  Descriptor described;
};

/// Returns the graph, and puts the descriptors that it refers to into `parts`, which has to live as
/// long.
Descriptor describe(const Target& target, const ConvGraph& graph, Descriptors& parts);

}  // namespace duplex::cudnn
