#include "layers/network.h"

#include <algorithm>

#include "core/clock.h"
#include "core/error.h"

namespace duplex {
namespace {

/// Returns the bytes that a parameter takes among others: the next one begins at a multiple of 256,
/// where every device lets a tensor begin.
std::size_t room_for(const TensorDesc& desc) {
  constexpr std::size_t alignment = 256;
  return (desc.bytes + alignment - 1) / alignment * alignment;
}

}  // namespace

Network::Network(Model model, Device& device, std::int64_t batch, bool training)
    : Network(std::move(model), device, batch, training, nullptr) {}

Network::Network(Model model, Device& device, std::int64_t batch, bool training, Network* first)
    : model_(std::move(model)),
      device_(device),
      batch_(batch),
      training_(training),
      bound_(model_.nodes().size()) {
  if (batch < 1 || batch > most_images)
    throw Error("a batch has from 1 to " + std::to_string(most_images) + " images, not " +
                std::to_string(batch));
  bind_layers();
  if (first != nullptr)
    take_parameters(*first);
  else
    allocate_parameters();
  place_tensors();
}

std::unique_ptr<Network> Network::with_own_activations() {
  return std::unique_ptr<Network>(new Network(model_, device_, batch_, training_, this));
}

void Network::throw_named(std::optional<std::size_t> layer, const Error& error) const {
  std::string name = device_.broken_in();
  if (name.empty() && layer) name = model_.nodes()[*layer].name;
  if (name.empty()) throw;
  throw Error(model_.title() + ", layer " + name + ": " + error.what(), error.code);
}

void Network::synchronize() const {
  named({}, [&] { device_.synchronize(); });
}

std::vector<Gradients> Network::wanted_gradients() const {
  std::vector<Gradients> wanted(bound_.size(), training_ ? Gradients::weights : Gradients::none);
  if (!training_) return wanted;
  const std::vector<bool> depends = depends_on_parameters(model_);
  for (std::size_t node = 1; node < bound_.size(); ++node)
    for (Model::Node input : model_.nodes()[node].inputs)
      if (depends[static_cast<std::size_t>(input)]) wanted[node] = Gradients::all;
  return wanted;
}

void Network::announce_convolutions(const std::vector<Gradients>& wanted) {
  std::vector<ConvOn> convs;
  for (std::size_t node = 1; node < bound_.size(); ++node) {
    const Model::Entry& entry = model_.nodes()[node];
    std::vector<Shape> x = model_.input_shapes(entry);
    std::optional<ConvSpec> spec = entry.layer->convolution(x);
    if (!spec) continue;
    spec->gradients = wanted[node];
    convs.push_back({*spec, with_samples(x[0], samples(entry))});
  }
  named({}, [&] { device_.announce(convs); });
}

void Network::bind_layers() {
  bound_[0].y.desc = plain_desc(with_samples(model_.entry(0).shape, batch_));
  const std::vector<Gradients> wanted = wanted_gradients();
  announce_convolutions(wanted);
  for (std::size_t node = 1; node < bound_.size(); ++node) {
    const Model::Entry& entry = model_.nodes()[node];
    std::vector<TensorDesc> x;
    BindContext context;
    context.wanted = wanted[node];
    context.label_smoothing = model_.label_smoothing();
    context.part = entry.part;
    context.part.samples = samples(entry);
    for (Model::Node input : entry.inputs) {
      x.push_back(bound_[static_cast<std::size_t>(input)].y.desc);
      const auto& maker = model_.entry(input).layer;
      context.relu_x.push_back(maker && maker->traits().relu);
    }
    named(node, [&] {
      device_.begin_layer(entry.name);
      bound_[node].layer = entry.layer->bind(device_, entry.name, x, context);
    });
    bound_[node].y.desc = bound_[node].layer->y;
  }
}

void Network::allocate_parameters() {
  std::size_t trained = 0;
  for (std::size_t node = 1; node < bound_.size(); ++node) {
    const std::vector<ParameterSpec> specs = model_.parameters(model_.nodes()[node]);
    for (std::size_t i = 0; i < specs.size(); ++i)
      if (specs[i].trained) trained += room_for(bound_[node].layer->parameters[i]);
  }
  const Shape all{static_cast<std::int64_t>(trained / sizeof(float))};
  for (Tensor* tensor : {&weights_, &gradients_}) {
    if (trained == 0 || (tensor == &gradients_ && !training_)) break;
    parameter_memory_.push_back(allocate(trained));
    *tensor = {plain_desc(all), static_cast<float*>(parameter_memory_.back().data())};
    // Elements between parameters are zero, and gradients of layers on which no loss depends.
    named({}, [&] { device_.fill(*tensor, 0.0F); });
  }
  if (weights_) {
    try {
      rounded_ = device_.keep_rounded(weights_);
    } catch (const OutOfMemory& error) {
      throw_no_room(error);
    }
  }

  std::size_t offset = 0;  // In elements.
  for (std::size_t node = 1; node < bound_.size(); ++node) {
    Bound& bound = bound_[node];
    const std::vector<ParameterSpec> specs = model_.parameters(model_.nodes()[node]);
    for (std::size_t i = 0; i < specs.size(); ++i) {
      const TensorDesc& desc = bound.layer->parameters[i];
      Parameter parameter{specs[i].name, specs[i], node, {desc, nullptr}, {}};
      if (specs[i].trained) {
        parameter.weights.data = weights_.data + offset;
        if (training_) parameter.gradient = {desc, gradients_.data + offset};
        offset += room_for(desc) / sizeof(float);
        bound.dp.push_back(parameter.gradient);
        bound.parameters.push_back(parameters_.size());
      } else {
        parameter_memory_.push_back(allocate(desc.bytes));
        parameter.weights.data = static_cast<float*>(parameter_memory_.back().data());
      }
      bound.p.push_back(parameter.weights);
      (specs[i].trained ? parameters_ : statistics_).push_back(std::move(parameter));
    }
  }
}

/// Parameters are views of memory, which is still that of `first`.
void Network::take_parameters(const Network& first) {
  parameters_ = first.parameters_;
  statistics_ = first.statistics_;
  weights_ = first.weights_;
  gradients_ = first.gradients_;
  for (std::size_t node = 1; node < bound_.size(); ++node) {
    bound_[node].parameters = first.bound_[node].parameters;
    bound_[node].p = first.bound_[node].p;
    bound_[node].dp = first.bound_[node].dp;
  }
}

/// Finds additions that are computed with one of their inputs.
std::vector<int> Network::join_sums() {
  std::vector<int> joins = joined_sums(model_, [this](Model::Node node, Model::Node other) {
    const auto& layer = bound_[static_cast<std::size_t>(node)].layer;
    return layer && layer->joins_sum(bound_[static_cast<std::size_t>(other)].y.desc);
  });
  for (std::size_t node = 0; node < joins.size(); ++node)
    if (joins[node] != BackwardPlan::none)
      bound_[static_cast<std::size_t>(joins[node])].joined = node;
  return joins;
}

void Network::place_tensors() {
  std::vector<TensorDesc> y;
  for (const Bound& bound : bound_) y.push_back(bound.y.desc);
  plan_ = plan_backward(model_, y, training_, join_sums());
  const MemoryPlan memory = plan_memory(plan_.blocks);
  arena_bytes_ = memory.bytes;
  arena_ = allocate(arena_bytes_);
  const auto tensor = [&](int block, const TensorDesc& desc) {
    if (block == BackwardPlan::none) return Tensor{desc, nullptr};
    char* data =
        static_cast<char*>(arena_.data()) + memory.offsets[static_cast<std::size_t>(block)];
    return Tensor{desc, reinterpret_cast<float*>(data)};
  };

  for (std::size_t node = 0; node < bound_.size(); ++node) {
    Bound& bound = bound_[node];
    const BackwardPlan::NodePlan& plan = plan_.nodes[node];
    bound.y = tensor(plan.y, bound.y.desc);
    for (Model::Node input : model_.nodes()[node].inputs) {
      bound.x.push_back(bound_[static_cast<std::size_t>(input)].y);
    }
    if (!plan.runs) continue;
    for (int block : plan.contributions) {
      bound.contributions.push_back(tensor(block, bound.y.desc));
    }
    bound.dy = tensor(plan.dy, bound.y.desc);
    for (std::size_t i = 0; i < plan.dx.size(); ++i) {
      bound.dx.push_back(tensor(plan.dx[i], bound.x[i].desc));
    }
    if (plan.sum) bound.sum = device_.gradient_sum(bound.y.desc);
  }
}

Buffer Network::allocate(std::size_t bytes) const {
  try {
    return device_.allocate(bytes);
  } catch (const OutOfMemory& error) {
    throw_no_room(error);
  }
}

void Network::throw_no_room(const OutOfMemory& error) const {
  // The arena is in proportion to the batch, and is nearly all of a network's memory but the
  // parameters. Free memory may lie in pieces, so the batch that did not fit is never proposed.
  const auto arena = static_cast<double>(arena_bytes_);
  const double left = arena - static_cast<double>(error.asked) + static_cast<double>(error.free);
  const auto fits =
      left <= 0 ? 0
                : std::min(static_cast<std::int64_t>(left / arena * static_cast<double>(batch_)),
                           batch_ - 1);
  throw Error(model_.title() + ", batch " + std::to_string(batch_) + ": " + error.what() +
              (fits > 0 ? "; a batch of " + std::to_string(fits) + " would fit"
                        : "; not even a batch of 1 would fit"));
}

void Network::initialise(std::uint64_t seed) {
  std::vector<float> values;
  for (Parameter* parameter : state()) {
    values.resize(static_cast<std::size_t>(parameter->spec.shape.elements()));
    draw_initial(parameter->spec, seed, values.data());
    named({}, [&] { device_.upload(parameter->weights, values.data()); });
  }
}

std::vector<Parameter*> Network::state() {
  std::vector<Parameter*> all;
  auto statistic = statistics_.begin();
  auto parameter = parameters_.begin();
  while (parameter != parameters_.end() || statistic != statistics_.end()) {
    const bool take_parameter =
        statistic == statistics_.end() ||
        (parameter != parameters_.end() && parameter->node <= statistic->node);
    all.push_back(take_parameter ? &*parameter++ : &*statistic++);
  }
  return all;
}

void Network::forward(const float* images, const ForwardContext& context) {
  begin_forward(images, context);
  const auto prepare = [&] {
    for (std::size_t node = 1; node < bound_.size(); ++node)
      if (runs_forward(node)) named(node, [&] { bound_[node].layer->prepare(context_); });
  };
  const std::size_t kind =
      (device_.keeps_nan() ? 4U : 0U) + (context.training ? 2U : 0U) + (context.labels ? 1U : 0U);
  run_phase(recorded_forward_[kind], prepare, [&] {
    for (std::size_t layer = 0; layer < layers(); ++layer) forward_layer(layer);
  });
  end_forward();
}

/// `work` asks for the phase's operations, layer by layer. Observers want to see each layer end.
void Network::run_phase(RecordedPhase& phase, const std::function<void()>& prepare,
                        const std::function<void()>& work) {
  Recording* const recording = observer_ ? nullptr : phase.get(device_, prepare, work);
  if (recording == nullptr) return work();
  named({}, [&] { recording->run(); });
}

void Network::begin_forward(const float* images, const ForwardContext& context) {
  context_ = context;
  may_go_back_ = false;
  if (images != nullptr) named({}, [&] { device_.upload(bound_[0].y, images); });
}

void Network::forward_layer(std::size_t layer) {
  if (runs_forward(layer)) {
    const std::int64_t begin = clock_ns();
    named(layer, [&] {
      device_.begin_layer(model_.nodes()[layer].name);
      forward_of(layer);
    });
    notify_observer(layer, Phase::forward, begin);
  }
  if (layer + 1 == layers()) end_forward();
}

void Network::forward_of(std::size_t node) {
  Bound& bound = bound_[node];
  if (!bound.joined) {
    if (plan_.nodes[node].joins == BackwardPlan::none)
      bound.layer->forward(bound.y, bound.x, bound.p, context_);
    return;
  }
  Bound& joined = bound_[*bound.joined];
  const bool first = static_cast<std::size_t>(model_.nodes()[node].inputs[0]) == *bound.joined;
  joined.layer->forward_into_sum(bound.y, bound.x[first ? 1 : 0],
                                 model_.nodes()[node].layer->traits().relu, joined.x, joined.p,
                                 context_);
}

void Network::backward() {
  begin_backward();
  const auto nothing = [] {};  // What forward was given counts.
  run_phase(recorded_backward_[device_.keeps_nan() ? 1 : 0], nothing, [&] {
    for (std::size_t layer = layers(); layer-- > 0;) backward_layer(layer);
  });
}

void Network::begin_backward() {
  if (!may_go_back_) {
    throw Error(model_.title() +
                ": backward needs a network for training, and before each call a " +
                "forward in training with labels");
  }
  may_go_back_ = false;
}

void Network::backward_layer(std::size_t layer) {
  if (!plan_.nodes[layer].runs) return;
  const std::int64_t begin = clock_ns();
  named(layer, [&] {
    device_.begin_layer(model_.nodes()[layer].name);
    backward_of(layer);
  });
  notify_observer(layer, Phase::backward, begin);
}

void Network::backward_of(std::size_t node) {
  Bound& bound = bound_[node];
  const BackwardPlan::NodePlan& plan = plan_.nodes[node];
  if (plan.sum) sum_contributions(node);
  if (plan.convert) {
    for (Tensor& dx : bound.dx) {
      if (dx && dx.data != bound.dy.data) device_.convert(dx, bound.dy);
    }
  }
  if (!model_.nodes()[node].layer->traits().gradient_passes) {
    bound.layer->backward(bound.dx, bound.dp, bound.dy, bound.x, bound.y, bound.p);
  }
}

void Network::sum_contributions(std::size_t node) {
  Bound& bound = bound_[node];
  const Tensor* y = plan_.nodes[node].mask ? &bound.y : nullptr;
  // An addition's gradient is also that of the node which it computes with itself, unless that one
  // has it in another layout.
  Bound* const joined = bound.joined ? &bound_[*bound.joined] : nullptr;
  if (joined != nullptr && joined->dy.data == bound.dy.data) {
    joined->layer->sum_gradients(bound.dy, bound.contributions, y, joined->dp, joined->x);
  } else {
    bound.sum->run(bound.dy, bound.contributions, y);
  }
}

void Network::leave_gradients(std::size_t layer) {
  for (Tensor& gradient : bound_[layer].dp) gradient.data = nullptr;
  for (RecordedPhase& phase : recorded_backward_) phase.forget();
}

void Network::notify_observer(std::size_t node, Phase phase, std::int64_t begin) {
  if (!observer_) return;
  named(node, [&] { device_.synchronize(); });
  observer_(node, phase, begin, clock_ns());
}

double Network::loss() {
  double sum = 0.0;
  for (std::size_t node = 1; node < bound_.size(); ++node) {
    if (context_.training || !model_.nodes()[node].training_only)
      named(node, [&] { sum += bound_[node].layer->loss(); });
  }
  return sum;
}

void Network::outputs(float* values) const {
  named({}, [&] { device_.download(values, bound_.back().y); });
}

void Network::logits(float* values) const {
  named({}, [&] { device_.download(values, bound_.back().x[0]); });
}

std::string Network::not_finite() {
  std::vector<Tensor> all;
  if (weights_) all.push_back(weights_);
  for (const Parameter& statistic : statistics_) all.push_back(statistic.weights);
  bool finite = true;
  named({}, [&] { finite = device_.finite(all); });
  if (finite) return "";
  for (const Parameter* parameter : state()) {
    if (!device_.finite({parameter->weights})) return parameter->name;
  }
  return "";
}

}  // namespace duplex
