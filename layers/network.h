// A network that runs: a model bound to a device for a fixed batch, its parameters, and the order
// in which forward and backward visit layers.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/device.h"
#include "core/exchange.h"
#include "layers/backward_plan.h"
#include "layers/model.h"

namespace duplex {

struct Parameter {
  std::string name;  ///< "conv1_1.weight".
  ParameterSpec spec;
  std::size_t node = 0;  ///< The layer it belongs to: its number in Model::nodes.
  Tensor weights;
  Tensor gradient;  ///< Of the last backward; empty for statistics and without training.
};

enum class Phase { forward, backward };

/// Told of every layer that ran: node, phase, begin and end by clock_ns. Waiting for the exchange
/// is not in it.
using LayerObserver =
    std::function<void(std::size_t node, Phase, std::int64_t begin, std::int64_t end)>;

class Network {
 public:
  /// Allocates everything that training (or, with `training` off, only inference) with this batch
  /// needs. `device` must outlive the network. Parameters are uninitialised until initialise() or a
  /// load.
  Network(Model model, Device& device, std::int64_t batch, bool training = true);

  /// Draws every parameter: RandomStream(seed, stream_of(name)); element i is (2 uniform(i) - 1) *
  /// bound.
  void initialise(std::uint64_t seed);

  /// Runs all layers on `images`, plain (batch, C, H, W) in host memory. With an exchange, each
  /// layer first awaits its parameters.
  void forward(const float* images, const Pass& pass, Exchange* exchange = nullptr);
  /// Of the last forward, which must have been in training with labels; once, since the gradients
  /// take the place of activations. Every layer's gradients are pushed as soon as they exist.
  void backward(Exchange* exchange = nullptr);

  double
  loss();  ///< Weighted sum over the losses of the last forward (auxiliary ones in training only).
  /// Of the last forward, to host memory: (batch, classes); probabilities after a softmax.
  void outputs(float* values) const;
  /// Copies the input of the loss at the network's end, as of the last forward, to host memory:
  /// (batch, classes), before any softmax.
  void logits(float* values) const;

  /// The name of the first parameter or running statistic with an element that is not finite;
  /// empty: there is none. Waits for the device.
  std::string not_finite();

  /// Waits for the device, as its synchronize(): what broke there names the layer.
  void synchronize() const;

  /// Returns the one before.
  LayerObserver observe(LayerObserver observer) {
    return std::exchange(observer_, std::move(observer));
  }

  const Model& model() const { return model_; }
  Device& device() { return device_; }
  std::int64_t batch() const { return batch_; }
  std::vector<Parameter>& parameters() { return parameters_; }  ///< Trained, in forward order.
  std::vector<Parameter>& statistics() {
    return statistics_;
  }  ///< Not trained: running statistics.
  /// Those of all parameters() in one, plain: each begins at an offset that is the same for its
  /// weights and its gradient, and what lies between is 0, which an optimiser leaves so.
  const Tensor& weights() const { return weights_; }
  const Tensor& gradients() const { return gradients_; }
  /// All of them, in the order of the layers: what a checkpoint holds.
  std::vector<Parameter*> state();
  /// Bytes of the arena that activations and their gradients share.
  std::size_t arena_bytes() const { return arena_bytes_; }
  /// Of the device. Where that has no more, the error says which batch would fit.
  Buffer allocate(std::size_t bytes) const;

 private:
  struct Bound {
    std::unique_ptr<BoundLayer> layer;
    std::vector<Tensor> x;
    Tensor y;
    std::vector<std::size_t> parameters;  ///< Numbers in parameters_.
    std::vector<Tensor> p, dp;            ///< p with the statistics.
    // Backward: dy = sum of `contributions`, masked; dx go into the inputs' contributions.
    std::vector<Tensor> contributions;
    Tensor dy;
    std::vector<Tensor> dx;
    std::unique_ptr<GradientSum> sum;
  };

  void bind_layers();
  void allocate_parameters();
  void place_tensors();
  template <class Work>
  void named(std::optional<std::size_t> node, const Work& work) const;
  void run_forward(std::size_t node, const Pass& pass);
  void run_backward(std::size_t node);
  void backward_of(std::size_t node);
  void observe(std::size_t node, Phase phase, std::int64_t begin);

  Model model_;
  Device& device_;
  std::int64_t batch_;
  bool training_;
  BackwardPlan plan_;
  std::vector<Bound> bound_;
  std::vector<Parameter> parameters_, statistics_;
  Tensor weights_, gradients_;
  std::vector<Buffer> parameter_memory_;
  std::size_t arena_bytes_ = 0;  ///< 0 until planned.
  Buffer arena_;
  LayerObserver observer_;
  bool training_forward_ = false;  ///< The last forward was in training,
  bool may_go_back_ = false;       ///< and what its backward needs is still there.
};

}  // namespace duplex
