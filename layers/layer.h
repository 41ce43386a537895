// Defines what a layer is: what it computes, with which parameters, and which shape it gives. A
// Layer knows no device; bind() makes a BoundLayer of it, for a device and a batch, which holds the
// device's operations.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/device.h"
#include "core/random.h"

namespace duplex {

/// Says how a parameter starts: with the constant `value` if `bound` is 0, else uniform in
/// [-bound, bound).
struct Initial {
  float value = 0.0F;
  float bound = 0.0F;

  /// Returns the uniform initialisation of He et al. 2015 (PyTorch's kaiming_uniform_): its
  /// variance is 2 / fan_in before a ReLU, 1 / fan_in otherwise.
  static Initial he(std::int64_t fan_in, bool relu);
};

/// Says of which parameter a rank has some rows without the others.
struct RowsOf {
  std::string parameter;   ///< Its full name; empty: all of it is here.
  std::int64_t first = 0;  ///< Its elements before these.
};

struct ParameterSpec {
  std::string name;  ///< Name within its layer: "weight", "bias", "running_mean".
  Shape shape;
  Initial initial;
  bool trained = true;  ///< False for state that forward itself updates (statistics).
  RowsOf rows = {};
};

/// Draws a parameter's first values, spec.shape.elements() of them, from RandomStream(seed,
/// stream_of(spec.name)): element i is (2 uniform(i) - 1) * bound. `spec.name` is the full name,
/// "conv1_1.weight". Rows of a parameter take the values that they have in the whole one.
void draw_initial(const ParameterSpec& spec, std::uint64_t seed, float* values);

class MapExchange;

/// Tells forward and backward what they need to know of the batch.
struct ForwardContext {
  bool training = true;
  std::uint64_t seed = 0;
  std::uint64_t first_sample = 0;  ///< Number of the batch's first sample, over the whole training.
  const std::int32_t* labels = nullptr;  ///< One label for each sample, for the losses.
  // For the part of a network that is cut (layers/parts): backward uses them, too.
  MapExchange* maps = nullptr;    ///< Carries what crosses between ranks.
  std::uint64_t micro_batch = 0;  ///< The batch's number among all that cross.
};

/// Runs a layer on a device, for a fixed batch. The caller passes tensors in; the operations inside
/// remember what a backward needs of the last forward (argmax of max pooling, dropout's mask).
class BoundLayer {
 public:
  virtual ~BoundLayer() = default;
  TensorDesc y;
  std::vector<TensorDesc> parameters;  ///< In the order of Layer::parameters.

  /// Gives a recorded forward() and backward() (Device::record) what differs from run to run:
  /// labels, and draws. forward() itself takes them from its context.
  virtual void prepare(const ForwardContext& /*context*/) {}
  /// `p` holds all parameters, including untrained ones, which forward may update.
  virtual void forward(Tensor& y, const std::vector<Tensor>& x, std::vector<Tensor>& p,
                       const ForwardContext& context) = 0;

  /// Returns whether forward_into_sum() is there: an addition of y and of a tensor of this
  /// description can be computed with this layer's forward. y is not written then.
  virtual bool joins_sum(const TensorDesc& /*other*/) const { return false; }
  /// Computes sum = y + other, then ReLU where `relu`, in the place of forward(). Backward is as
  /// after forward(). Throws Error where joins_sum() is false.
  virtual void forward_into_sum(Tensor& sum, const Tensor& other, bool relu,
                                const std::vector<Tensor>& x, std::vector<Tensor>& p,
                                const ForwardContext& context);
  /// Overwrites the sum's gradient as GradientSum::run(dy, inputs, sum) does, and begins the
  /// backward() that this layer does next with it: it may overwrite dp. Throws Error where
  /// joins_sum() is false.
  virtual void sum_gradients(Tensor& dy, const std::vector<Tensor>& inputs, const Tensor* sum,
                             std::vector<Tensor>& dp, const std::vector<Tensor>& x);

  /// Overwrites dp (one gradient for each trained parameter) and dx. Where dp of a linear layer has
  /// no data, none of it is wanted. A dx[i] without data is not wanted; if
  /// traits().writes_every_dx, every dx[i] has data. If traits().relu, dy is already masked by that
  /// ReLU. Losses, and layers whose traits().takes_gradient, take no dy.
  virtual void backward(std::vector<Tensor>& dx, std::vector<Tensor>& dp, const Tensor& dy,
                        const std::vector<Tensor>& x, const Tensor& y,
                        const std::vector<Tensor>& p) = 0;

  /// Returns the weighted loss of the last forward; 0 for layers that are no loss.
  virtual double loss() { return 0.0; }
};

/// Tells the memory plan how backward treats the gradients of a layer.
struct LayerTraits {
  bool relu = false;  ///< y is the output of a ReLU whose mask the network must apply to dy.
  bool backward_reads_x = false;
  bool backward_reads_y = false;
  bool gradient_passes = false;    ///< dx is dy for every input; backward is not called (addition).
  bool gradient_in_place = false;  ///< dx may lie in dy's memory.
  bool writes_every_dx = false;    ///< backward needs memory for dx even where it is not wanted.
  bool masks_slices = false;       ///< backward masks dx by the ReLU that made x (concatenation).
  bool takes_gradient = false;     ///< Another rank gives dx: backward takes no dy, as in a loss.
  bool returns_gradient = false;   ///< Another rank wants dy, whatever came before.
};

/// A run of a map's channels, from `first` to the one before `end`. The outputs of a linear layer
/// are channels, too.
struct Channels {
  std::int64_t first = 0, end = 0;

  std::int64_t count() const { return end - first; }
  bool operator==(const Channels& other) const { return first == other.first && end == other.end; }
  bool operator!=(const Channels& other) const { return !(*this == other); }
};

/// Says of which layer, for which samples of a batch, a node of a cut network computes which
/// channels.
struct PartOf {
  std::string layer;               ///< The whole layer's name; empty: it is whole.
  std::int64_t first_sample = 0;   ///< The samples of the batch before its own.
  std::int64_t samples = 0;        ///< The number of its samples; 0: the batch's.
  std::int64_t first_channel = 0;  ///< The channels of the layer before its own.
  std::int64_t all_channels = 0;   ///< The channels of the layer.
};

/// Tells a layer what it needs to know of the network around it.
struct BindContext {
  std::vector<bool> relu_x;  ///< Whether a layer with traits().relu made input i.
  Gradients wanted = Gradients::all;
  float label_smoothing = 0.0F;  ///< For losses.
  PartOf part;                   ///< Its samples are counted, also where the layer is whole.
};

class Layer {
 public:
  virtual ~Layer() = default;

  virtual std::string type() const = 0;  ///< First column of the table: "conv", "max pool".
  virtual std::string geometry(const std::vector<Shape>&) const { return ""; }  ///< "7x7/2".
  virtual LayerTraits traits() const { return {}; }

  /// Returns the shape of y. Throws Error if the inputs do not fit.
  virtual Shape output(const std::vector<Shape>& x) const = 0;
  virtual std::vector<ParameterSpec> parameters(const std::vector<Shape>&) const { return {}; }
  /// Returns the multiply-adds of one forward with inputs of these shapes; only convolutions and
  /// linear layers count.
  virtual std::int64_t macs(const std::vector<Shape>&) const { return 0; }
  /// Returns the channels of every input that a forward reads to compute these channels of its
  /// output alone, one at least, with the rows of its parameters that have their numbers. An input
  /// of which it reads nothing has an empty run. Returns std::nullopt if it computes all at once.
  virtual std::optional<std::vector<Channels>> reads(const std::vector<Shape>& /*x*/,
                                                     const Channels& /*y*/) const {
    return std::nullopt;
  }
  /// Returns the layer that computes these channels of the output, from the channels of the inputs
  /// that reads() names, with the rows of the parameters that have their numbers; null: this one
  /// does. Where it reads neighbours (LRN), the result has one channel for each of the inputs'.
  virtual std::shared_ptr<const Layer> part(const Channels& /*y*/) const { return nullptr; }
  /// Returns which loss this layer is; none for other layers.
  virtual std::optional<LossKind> loss_kind() const { return std::nullopt; }
  /// Returns the factor of the loss in the network's sum; 0 for layers that are no loss.
  virtual float loss_weight() const { return 0.0F; }

  /// Returns the convolution that bind() asks the device for, except which gradients; none for
  /// other layers.
  virtual std::optional<ConvSpec> convolution(const std::vector<Shape>& /*x*/) const {
    return std::nullopt;
  }

  /// Makes the layer's operations on a device. `name` is the layer's name in the network, from
  /// which dropout takes its random stream.
  virtual std::unique_ptr<BoundLayer> bind(Device& device, const std::string& name,
                                           const std::vector<TensorDesc>& x,
                                           const BindContext& context) const = 0;
};

}  // namespace duplex
