// A layer: what it computes, with which parameters, giving which shape. It knows no device. Bound
// to a device and a batch it becomes a BoundLayer, which holds the device's operations.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/device.h"
#include "core/random.h"

namespace duplex {

/// How a parameter starts: constant `value` where `bound` is 0, else uniform in [-bound, bound).
struct Initial {
  float value = 0.0F;
  float bound = 0.0F;

  /// He et al. 2015, uniform: variance 2 / fan_in before a ReLU, 1 / fan_in otherwise.
  static Initial he(std::int64_t fan_in, bool relu);
};

struct ParameterSpec {
  std::string name;  ///< Within its layer: "weight", "bias", "running_mean".
  Shape shape;
  Initial initial;
  bool trained = true;  ///< False: state that forward itself updates (running statistics).
};

/// Draws a parameter's first values, spec.shape.elements() of them: RandomStream(seed,
/// stream_of(spec.name)), element i is (2 uniform(i) - 1) * bound. `spec.name` is the full name,
/// "conv1_1.weight".
void draw_initial(const ParameterSpec& spec, std::uint64_t seed, float* values);

/// What forward and backward need to know of the batch.
struct Pass {
  bool training = true;
  std::uint64_t seed = 0;
  std::uint64_t first_sample = 0;  ///< Number of the batch's first sample, over the whole training.
  const std::int32_t* labels = nullptr;  ///< A label a sample, for the losses.
};

/// A layer on a device, for a fixed batch. Tensors are passed in; the operations inside remember
/// what a backward needs of the last forward (winners of max pooling, dropout's mask).
class BoundLayer {
 public:
  virtual ~BoundLayer() = default;
  TensorDesc y;
  std::vector<TensorDesc> parameters;  ///< In the order of Layer::parameters.

  /// `p`: all parameters, untrained ones included (those may be updated).
  virtual void forward(Tensor& y, const std::vector<Tensor>& x, std::vector<Tensor>& p,
                       const Pass& pass) = 0;

  /// Overwrites dp (a gradient a trained parameter) and dx. dx[i] without data is not wanted
  /// (traits().writes_every_dx: always given). dy is masked by ReLU already if the layer's relu()
  /// says so; losses take no dy.
  virtual void backward(std::vector<Tensor>& dx, std::vector<Tensor>& dp, const Tensor& dy,
                        const std::vector<Tensor>& x, const Tensor& y,
                        const std::vector<Tensor>& p) = 0;

  /// Losses: the loss of the last forward, weighted. 0 otherwise.
  virtual double loss() { return 0.0; }
};

/// How backward treats the gradients of a layer; what the memory plan asks.
struct LayerTraits {
  bool relu = false;  ///< y is the output of a ReLU whose mask the network must apply to dy.
  bool backward_reads_x = false;
  bool backward_reads_y = false;
  bool gradient_passes = false;    ///< dx is dy for every input; backward is not called (addition).
  bool gradient_in_place = false;  ///< dx may be dy's memory.
  bool writes_every_dx = false;    ///< backward needs memory for dx even where it is not wanted.
  bool masks_slices =
      false;  ///< backward itself masks dx by the ReLU that produced x (concatenation).
};

/// What a layer is told of the network around it.
struct Surroundings {
  std::vector<bool> relu_x;  ///< Whether input i was made by a layer with traits().relu.
  Gradients wanted = Gradients::all;
};

class Layer {
 public:
  virtual ~Layer() = default;

  virtual std::string type() const = 0;  ///< "conv", "max pool": the table's first column.
  virtual std::string geometry(const std::vector<Shape>&) const { return ""; }  ///< "7x7/2".
  virtual LayerTraits traits() const { return {}; }

  /// Shape of y. Throws Error if the inputs do not fit.
  virtual Shape output(const std::vector<Shape>& x) const = 0;
  virtual std::vector<ParameterSpec> parameters(const std::vector<Shape>&) const { return {}; }
  /// Multiply-adds of one forward with inputs of these shapes (convolutions and linear layers).
  virtual std::int64_t macs(const std::vector<Shape>&) const { return 0; }
  /// Which loss this layer is; none for other layers.
  virtual std::optional<LossKind> loss_kind() const { return std::nullopt; }
  /// The loss's part in the sum; 0 for layers that are no loss.
  virtual float loss_weight() const { return 0.0F; }

  /// `name` is the layer's name in the network: it seeds dropout.
  virtual std::unique_ptr<BoundLayer> bind(Device& device, const std::string& name,
                                           const std::vector<TensorDesc>& x,
                                           const Surroundings& surroundings) const = 0;
};

}  // namespace duplex
