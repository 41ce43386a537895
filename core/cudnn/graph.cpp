#include "core/cudnn/graph.h"

#include <algorithm>
#include <array>
#include <limits>

#include "core/cudnn/kernels.h"
#include "core/error.h"

namespace duplex::cudnn {
namespace {

using Descriptor = Plan::Descriptor;
using Descriptors = std::vector<Descriptor>;

/// Numbers that stand for the memory of tensors. What only the next node reads has no memory.
enum Number : std::int64_t { x_number = 1, weights_number, y_number, bias_number, inner_number };

/// What an engine may take beside the tensors.
constexpr std::size_t workspace_limit = std::size_t{512} << 20;
/// Of what cuDNN proposes, in the order of its own estimate, so many are timed.
constexpr std::size_t timed_at_most = 12;
constexpr int timed_runs = 3;

Descriptor make(cudnnBackendDescriptorType_t type) {
  cudnnBackendDescriptor_t made = nullptr;
  check(cudnnBackendCreateDescriptor(type, &made), "describing a convolution");
  return Descriptor(made);
}

template <class Value>
void set(const Descriptor& descriptor, cudnnBackendAttributeName_t name,
         cudnnBackendAttributeType_t type, const Value* values, std::int64_t count) {
  check(cudnnBackendSetAttribute(descriptor.get(), name, type, count, values),
        "describing a convolution");
}
template <class Value>
void set(const Descriptor& descriptor, cudnnBackendAttributeName_t name,
         cudnnBackendAttributeType_t type, const Value& value) {
  set(descriptor, name, type, &value, 1);
}
void set(const Descriptor& descriptor, cudnnBackendAttributeName_t name, const Descriptor& value) {
  const cudnnBackendDescriptor_t raw = value.get();
  set(descriptor, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, raw);
}

void finish(const Descriptor& descriptor) {
  check(cudnnBackendFinalize(descriptor.get()), "describing a convolution");
}

std::array<std::int64_t, 4> strides_of(const View& view) {
  const std::int64_t c = view.c, h = view.h, w = view.w;
  if (view.order == Order::nchw) return {c * h * w, h * w, w, 1};
  return {h * w * c, 1, w * c, c};
}

Descriptor tensor(std::int64_t number, const View& view, bool has_memory = true) {
  Descriptor descriptor = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  const std::array<std::int64_t, 4> extents{view.n, view.c, view.h, view.w};
  const std::array<std::int64_t, 4> strides = strides_of(view);
  const std::int64_t alignment = 16;
  set(descriptor, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  set(descriptor, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, extents.data(), 4);
  set(descriptor, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, strides.data(), 4);
  set(descriptor, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, number);
  set(descriptor, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, alignment);
  set(descriptor, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, !has_memory);
  finish(descriptor);
  return descriptor;
}

Descriptor convolution(const Window& window) {
  Descriptor descriptor = make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  const std::int64_t dimensions = 2;
  const std::array<std::int64_t, 2> dilations{1, 1}, strides{window.stride_y, window.stride_x},
      before{window.padding.top, window.padding.left},
      after{window.padding.bottom, window.padding.right};
  set(descriptor, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  set(descriptor, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE,
      CUDNN_CROSS_CORRELATION);
  set(descriptor, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, dimensions);
  set(descriptor, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, dilations.data(), 2);
  set(descriptor, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, strides.data(), 2);
  set(descriptor, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, before.data(), 2);
  set(descriptor, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, after.data(), 2);
  finish(descriptor);
  return descriptor;
}

/// The attributes of the node of a direction.
struct NodeNames {
  cudnnBackendDescriptorType_t node;
  cudnnBackendAttributeName_t convolution, x, weights, y, alpha, beta;
};

NodeNames names_of(Direction direction) {
  switch (direction) {
    case Direction::data:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case Direction::weights:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
    default:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
  }
}

/// A node that computes `y` from `x`, and from `b` where there is one, element by element.
Descriptor pointwise(Descriptors& parts, cudnnPointwiseMode_t mode, const Descriptor& x,
                     const Descriptor* b, const Descriptor& y) {
  Descriptor what = make(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  set(what, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode);
  set(what, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  finish(what);
  Descriptor node = make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  set(node, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, what);
  set(node, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
  if (b != nullptr) set(node, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *b);
  set(node, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
  finish(node);
  parts.push_back(std::move(what));
  return node;
}

/// The graph itself, and in `parts` what it refers to.
Descriptor graph_of(const Context& context, const ConvGraph& graph, Descriptors& parts) {
  const auto keep = [&](Descriptor descriptor) -> std::size_t {
    parts.push_back(std::move(descriptor));
    return parts.size() - 1;
  };
  const bool alone = !graph.bias && !graph.relu;
  const std::size_t x = keep(tensor(x_number, graph.x));
  const std::size_t weights = keep(tensor(weights_number, graph.weights));
  const std::size_t y = keep(tensor(y_number, graph.y));
  const std::size_t result = alone ? y : keep(tensor(inner_number, graph.y, false));
  const std::size_t conv = keep(convolution(graph.window));

  std::vector<cudnnBackendDescriptor_t> nodes;
  const auto add_node = [&](Descriptor node) {
    nodes.push_back(parts[keep(std::move(node))].get());
  };

  const NodeNames names = names_of(graph.direction);
  const float one = 1.0F, zero = 0.0F;
  Descriptor node = make(names.node);
  set(node, names.convolution, parts[conv]);
  set(node, names.x, parts[x]);
  set(node, names.weights, parts[weights]);
  set(node, names.y, parts[result]);
  set(node, names.alpha, CUDNN_TYPE_FLOAT, one);
  set(node, names.beta, CUDNN_TYPE_FLOAT, zero);
  finish(node);
  add_node(std::move(node));

  std::size_t last = result;
  if (graph.bias) {
    const View extents{1, graph.y.c, 1, 1, graph.y.order};
    const std::size_t bias = keep(tensor(bias_number, extents));
    const std::size_t sum = graph.relu ? keep(tensor(inner_number + 1, graph.y, false)) : y;
    add_node(pointwise(parts, CUDNN_POINTWISE_ADD, parts[last], &parts[bias], parts[sum]));
    last = sum;
  }
  if (graph.relu)
    add_node(pointwise(parts, CUDNN_POINTWISE_RELU_FWD, parts[last], nullptr, parts[y]));

  Descriptor whole = make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  const cudnnHandle_t handle = context.dnn();
  set(whole, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle);
  set(whole, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, nodes.data(),
      static_cast<std::int64_t>(nodes.size()));
  finish(whole);
  return whole;
}

/// What cuDNN proposes, its best first; nothing where it knows nothing.
Descriptors proposals(const Descriptor& graph, cudnnBackendHeurMode_t mode) {
  Descriptor heuristic = make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  set(heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  set(heuristic, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
  if (cudnnBackendFinalize(heuristic.get()) != CUDNN_STATUS_SUCCESS) return {};
  std::int64_t count = 0;
  if (cudnnBackendGetAttribute(heuristic.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                               CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count,
                               nullptr) != CUDNN_STATUS_SUCCESS)
    return {};
  Descriptors configurations;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (std::int64_t i = 0; i < count; ++i) {
    configurations.push_back(make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
    raw.push_back(configurations.back().get());
  }
  check(cudnnBackendGetAttribute(heuristic.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &count, raw.data()),
        "asking cuDNN for engines");
  configurations.resize(static_cast<std::size_t>(count));
  return configurations;
}

/// Float32 throughout, the same bits every time, and no more rounding than a sum has.
bool is_strict(const Descriptor& configuration) {
  const Descriptor engine = make(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t raw = engine.get();
  std::int64_t count = 0;
  if (cudnnBackendGetAttribute(configuration.get(), CUDNN_ATTR_ENGINECFG_ENGINE,
                               CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count,
                               &raw) != CUDNN_STATUS_SUCCESS)
    return false;
  std::array<cudnnBackendNumericalNote_t, CUDNN_NUMERICAL_NOTE_TYPE_COUNT> notes{};
  if (cudnnBackendGetAttribute(engine.get(), CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                               CUDNN_TYPE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count,
                               notes.data()) != CUDNN_STATUS_SUCCESS)
    return false;
  return std::none_of(notes.begin(), notes.begin() + count, [](cudnnBackendNumericalNote_t note) {
    return note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE ||
           note == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS ||
           note == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION ||
           note == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC
#if CUDNN_VERSION >= 8300
           || note == CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13
#endif
        ;
  });
}

/// Null: the engine cannot compute this after all.
Descriptor plan_of(const Context& context, const Descriptor& configuration) {
  Descriptor plan = make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  const cudnnHandle_t handle = context.dnn();
  set(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, handle);
  set(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
  if (cudnnBackendFinalize(plan.get()) != CUDNN_STATUS_SUCCESS) plan.reset();
  return plan;
}

/// Memory to time engines on.
class Trial {
 public:
  Trial(const Context& context, const ConvGraph& graph) : context_(context) {
    memory_.x = place(graph.x.elements());
    memory_.weights = place(graph.weights.elements());
    memory_.y = place(graph.y.elements());
    if (graph.bias) memory_.bias = place(graph.y.c);
    cudaEvent_t made = nullptr;
    check(cudaEventCreate(&made), "timing an engine");
    before_.reset(made);
    check(cudaEventCreate(&made), "timing an engine");
    after_.reset(made);
  }

  /// Milliseconds of the fastest of some runs; infinite where the engine fails.
  float time(const Plan& plan) {
    float best = std::numeric_limits<float>::infinity();
    try {
      plan.run(context_, memory_, "trying an engine");  // Loads the kernels.
      for (int i = 0; i < timed_runs; ++i) {
        check(cudaEventRecord(before_.get(), context_.stream()), "timing an engine");
        plan.run(context_, memory_, "trying an engine");
        check(cudaEventRecord(after_.get(), context_.stream()), "timing an engine");
        check(cudaEventSynchronize(after_.get()), "timing an engine");
        float took = 0.0F;
        check(cudaEventElapsedTime(&took, before_.get(), after_.get()), "timing an engine");
        best = std::min(best, took);
      }
    } catch (const Error&) {
      return std::numeric_limits<float>::infinity();
    }
    return best;
  }

 private:
  void* place(std::int64_t elements) {
    buffers_.push_back(context_.allocate(static_cast<std::size_t>(elements) * sizeof(float)));
    auto* data = static_cast<float*>(buffers_.back().data());
    ripple(context_, data, elements);
    return data;
  }

  const Context& context_;
  std::vector<Buffer> buffers_;
  ConvMemory memory_;
  Handle<cudaEvent_t, cudaEventDestroy> before_, after_;
};

}  // namespace

std::string ConvGraph::key() const {
  std::string text;
  const auto add = [&](std::int64_t value) { text += std::to_string(value) + ' '; };
  add(static_cast<int>(direction));
  for (const std::int64_t value :
       {window.height, window.width, window.stride_y, window.stride_x, window.padding.top,
        window.padding.left, window.padding.bottom, window.padding.right})
    add(value);
  for (const View& view : {x, weights, y}) {
    for (const std::uint32_t extent : {view.n, view.c, view.h, view.w}) add(extent);
    add(static_cast<int>(view.order));
  }
  add(bias ? 1 : 0);
  add(relu ? 1 : 0);
  return text;
}

Plan::Plan(std::shared_ptr<const std::vector<Descriptor>> graph, Descriptor plan)
    : graph_(std::move(graph)), plan_(std::move(plan)) {
  std::int64_t bytes = 0, count = 0;
  check(cudnnBackendGetAttribute(plan_.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                 CUDNN_TYPE_INT64, 1, &count, &bytes),
        "asking cuDNN for an engine's workspace");
  workspace_ = static_cast<std::size_t>(bytes);
}

void Plan::run(const Context& context, const ConvMemory& memory, const char* what) const {
  context.enter();
  const std::array<std::int64_t, 4> numbers{x_number, weights_number, y_number, bias_number};
  const std::array<void*, 4> pointers{memory.x, memory.weights, memory.y, memory.bias};
  const std::int64_t count = memory.bias == nullptr ? 3 : 4;
  void* workspace = context.workspace();
  const Descriptor pack = make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  set(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, numbers.data(), count);
  set(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, pointers.data(), count);
  set(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace);
  finish(pack);
  check(cudnnBackendExecute(context.dnn(), plan_.get(), pack.get()), what);
}

std::shared_ptr<const Plan> Plans::fastest(const ConvGraph& graph) {
  const std::string key = graph.key();
  const auto known = plans_.find(key);
  if (known != plans_.end()) return known->second;

  auto parts = std::make_shared<Descriptors>();
  Descriptor made_graph = graph_of(*context_, graph, *parts);
  parts->push_back(std::move(made_graph));
  const std::size_t whole = parts->size() - 1;
  std::vector<std::shared_ptr<const Plan>> usable;
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    if (!usable.empty()) break;
    for (Descriptor& configuration : proposals((*parts)[whole], mode)) {
      if (usable.size() == timed_at_most) break;
      if (!is_strict(configuration)) continue;
      Descriptor made = plan_of(*context_, configuration);
      if (!made) continue;
      auto plan = std::make_shared<const Plan>(parts, std::move(made));
      if (plan->workspace() > workspace_limit) continue;
      parts->push_back(std::move(configuration));
      usable.push_back(std::move(plan));
    }
  }

  std::shared_ptr<const Plan> best;
  if (!usable.empty()) {
    Trial trial(*context_, graph);
    float least = std::numeric_limits<float>::infinity();
    for (const auto& plan : usable) {
      context_->reserve(plan->workspace());
      const float took = trial.time(*plan);
      if (took < least) {
        least = took;
        best = plan;
      }
    }
  }
  return plans_[key] = best;
}

}  // namespace duplex::cudnn
