// Runs a network: a model bound to a device for a fixed batch, with its parameters and the order in
// which forward and backward visit layers.
#pragma once
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/device.h"
#include "core/error.h"
#include "layers/model.h"
#include "layers/plan/backward_plan.h"
#include "layers/recorded_phase.h"

namespace duplex {

struct Parameter {
  std::string name;  ///< "conv1_1.weight".
  ParameterSpec spec;
  std::size_t node = 0;  ///< Number in Model::nodes of the layer it belongs to.
  Tensor weights;
  Tensor gradient;  ///< Gradient of the last backward; empty for statistics and without training.
};

enum class Phase { forward, backward };

/// The network calls it for every layer that ran, with node, phase, and begin and end by clock_ns,
/// which do not include waiting for the exchange.
using LayerObserver =
    std::function<void(std::size_t node, Phase, std::int64_t begin, std::int64_t end)>;

class Network {
 public:
  /// Allocates everything that training (or, with `training` off, only inference) with this batch
  /// needs. `device` must outlive the network. Parameters are uninitialised until initialise() or a
  /// load.
  Network(Model model, Device& device, std::int64_t batch, bool training = true);
  /// Returns another network of the same model, device and batch, which has activations of its own
  /// and this one's parameters, statistics and gradients. This one must outlive it.
  std::unique_ptr<Network> with_own_activations();

  /// Draws every parameter from RandomStream(seed, stream_of(name)): element i is
  /// (2 uniform(i) - 1) * bound.
  void initialise(std::uint64_t seed);

  /// Runs all layers on `images`, plain (batch, C, H, W) in host memory. A device that records
  /// operations is asked for all of them at once, but for the first time of each kind (training,
  /// labels, keeping NaN), and where there is an observer. So it is in backward().
  void forward(const float* images, const ForwardContext& context);
  /// Computes the gradients of the last forward, which must have been in training with labels. It
  /// can do so only once, since gradients take the place of activations.
  void backward();

  // These functions run the same layer by layer, for a loop that exchanges parameters in between
  // (tools/training/loop.cpp). A layer is given by its number in Model::nodes; layer 0, the input,
  // does nothing.

  std::size_t layers() const { return bound_.size(); }
  /// Returns which of parameters() a layer has, by number.
  const std::vector<std::size_t>& parameters_of(std::size_t layer) const {
    return bound_[layer].parameters;
  }
  /// Copies `images` before it returns, if any layer here reads them (else they may be null); the
  /// labels of `context` must live until the last layer's forward is done.
  void begin_forward(const float* images, const ForwardContext& context);
  void forward_layer(std::size_t layer);  ///< Call it once for every layer, in ascending order.
  /// Throws Error unless a whole forward in training, with labels, came before it.
  void begin_backward();
  /// From now on backward computes no gradients of this linear layer's weights and bias: whoever
  /// wants them makes them of factors_of().
  void leave_gradients(std::size_t layer);
  /// The gradient of a layer's output, and its input, as backward_layer() has left them; the
  /// backward of the next layer may overwrite them.
  std::pair<Tensor, Tensor> factors_of(std::size_t layer) const {
    return {bound_[layer].dy, bound_[layer].x[0]};
  }
  void backward_layer(std::size_t layer);  ///< Call it once for every layer, in descending order.

  /// Does some work on the network's tensors, and adds the name of a layer to an error. A device
  /// that computes while the host goes on names the layer in which it broke down, which need not be
  /// `layer`; otherwise the error bears the name of `layer`, if there is one.
  template <class Work>
  void named(std::optional<std::size_t> layer, const Work& work) const {
    try {
      work();
    } catch (const Error& error) {
      throw_named(layer, error);
    }
  }

  /// Returns the weighted sum of the losses of the last forward (auxiliary ones in training only).
  double loss();
  /// Copies the outputs of the last forward to host memory: (batch, classes), which are
  /// probabilities after a softmax.
  void outputs(float* values) const;
  /// Copies the input of the loss at the network's end, as of the last forward, to host memory:
  /// (batch, classes), before any softmax.
  void logits(float* values) const;

  /// Returns the name of the first parameter or running statistic with an element that is not
  /// finite, or "" if there is none. Waits for the device.
  std::string not_finite();

  /// Waits for the device by Device::synchronize(). An error names the layer that broke it.
  void synchronize() const;

  /// Sets the observer, and returns the one before.
  LayerObserver observe(LayerObserver observer) {
    return std::exchange(observer_, std::move(observer));
  }

  const Model& model() const { return model_; }
  Device& device() { return device_; }
  std::int64_t batch() const { return batch_; }
  /// Returns the trained parameters, in forward order.
  std::vector<Parameter>& parameters() { return parameters_; }
  /// Returns the running statistics, which are not trained.
  std::vector<Parameter>& statistics() { return statistics_; }
  /// One plain tensor holds the weights of all parameters(), another their gradients. A parameter
  /// begins at the same offset in both; the elements between parameters are 0, and an optimiser
  /// leaves them so.
  const Tensor& weights() const { return weights_; }
  const Tensor& gradients() const { return gradients_; }
  /// Returns parameters and statistics in the order of the layers, as a checkpoint holds them.
  std::vector<Parameter*> state();
  /// Returns the bytes of the arena that activations and their gradients share.
  std::size_t arena_bytes() const { return arena_bytes_; }
  /// Returns the blocks of the arena, and which activation or gradient each is for.
  const BackwardPlan& plan() const { return plan_; }
  /// Allocates memory of the device. If it has too little, the error says which batch would fit.
  Buffer allocate(std::size_t bytes) const;

 private:
  struct Bound {
    std::unique_ptr<BoundLayer> layer;
    std::vector<Tensor> x;
    Tensor y;
    std::vector<std::size_t> parameters;  ///< Numbers in parameters_.
    std::vector<Tensor> p, dp;            ///< p includes the statistics.
    // In backward, dy is the masked sum of `contributions`; dx are contributions to the inputs' dy.
    std::vector<Tensor> contributions;
    Tensor dy;
    std::vector<Tensor> dx;
    std::unique_ptr<GradientSum> sum;
    std::optional<std::size_t> joined;  ///< The node that this addition computes with itself.
  };

  /// The samples of a batch that a layer takes.
  std::int64_t samples(const Model::Entry& entry) const {
    return entry.part.samples != 0 ? entry.part.samples : batch_;
  }
  /// Returns which gradients backward wants of each node's layer.
  std::vector<Gradients> wanted_gradients() const;
  /// Tells the device of all convolutions before it is asked for the first.
  void announce_convolutions(const std::vector<Gradients>& wanted);
  void bind_layers();
  /// `first`: the network whose parameters this one has; null: it has its own.
  Network(Model model, Device& device, std::int64_t batch, bool training, Network* first);
  void allocate_parameters();
  void take_parameters(const Network& first);
  std::vector<int> join_sums();
  void place_tensors();
  [[noreturn]] void throw_named(std::optional<std::size_t> layer, const Error& error) const;
  /// Returns whether the forward that has begun runs a node's layer.
  bool runs_forward(std::size_t node) const {
    const Model::Entry& entry = model_.nodes()[node];
    return entry.layer && (!entry.training_only || context_.training);
  }
  void end_forward() {
    may_go_back_ = training_ && context_.training && context_.labels != nullptr;
  }
  void run_phase(RecordedPhase& phase, const std::function<void()>& prepare,
                 const std::function<void()>& work);
  void forward_of(std::size_t node);
  void backward_of(std::size_t node);
  void sum_contributions(std::size_t node);
  [[noreturn]] void throw_no_room(const OutOfMemory& error) const;
  void notify_observer(std::size_t node, Phase phase, std::int64_t begin);

  Model model_;
  Device& device_;
  std::int64_t batch_;
  bool training_;
  BackwardPlan plan_;
  std::vector<Bound> bound_;
  std::vector<Parameter> parameters_, statistics_;
  Tensor weights_, gradients_;
  std::vector<Buffer> parameter_memory_;
  std::shared_ptr<void> rounded_;  ///< Device::keep_rounded of weights_.
  std::size_t arena_bytes_ = 0;    ///< 0 until planned.
  Buffer arena_;
  LayerObserver observer_;
  /// They differ in whether they keep NaN, and forwards in whether they train and have labels.
  std::array<RecordedPhase, 8> recorded_forward_;
  std::array<RecordedPhase, 2> recorded_backward_;
  ForwardContext context_;    ///< Context of the last forward.
  bool may_go_back_ = false;  ///< Whether what backward needs is still there.
};

}  // namespace duplex
