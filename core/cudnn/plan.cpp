#include "core/cudnn/plan.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <vector>

#include "core/cudnn/kernels.h"
#include "core/error.h"

namespace duplex::cudnn {
namespace {

/// What an engine may take beside the tensors.
constexpr std::size_t workspace_limit = std::size_t{512} << 20;
/// Of what cuDNN proposes, in the order of its own estimate, so many are timed.
constexpr std::size_t timed_at_most = 12;
constexpr int timed_runs = 3;

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

/// The same bits every time, no more rounding than a sum has, and none of the inputs but what the
/// precision says.
bool is_allowed(const Descriptor& configuration, Precision precision) {
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
  const bool strict = precision == Precision::float32;
  return std::none_of(notes.begin(), notes.begin() + count, [&](cudnnBackendNumericalNote_t note) {
    return (strict && (note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE ||
                       note == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS)) ||
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
    memory_.x = place(graph.x);
    memory_.weights = place(graph.weights);
    memory_.y = place(graph.y);
    if (graph.bias) memory_.bias = place(graph.bias_view());
    cudaEvent_t made = nullptr;
    check(cudaEventCreate(&made), "timing an engine");
    before_.reset(made);
    check(cudaEventCreate(&made), "timing an engine");
    after_.reset(made);
  }

  /// Milliseconds of the fastest of some runs; infinite where the engine fails.
  float time(const std::shared_ptr<const Plan>& plan) {
    float best = std::numeric_limits<float>::infinity();
    Runner runner(plan);
    try {
      runner.run(context_, memory_, "trying an engine");  // Loads the kernels.
      for (int i = 0; i < timed_runs; ++i) {
        check(cudaEventRecord(before_.get(), context_.stream()), "timing an engine");
        runner.run(context_, memory_, "trying an engine");
        check(cudaEventRecord(after_.get(), context_.stream()), "timing an engine");
        check(cudaEventSynchronize(after_.get()), "timing an engine");
        float took = 0.0F;
        check(cudaEventElapsedTime(&took, before_.get(), after_.get()), "timing an engine");
        best = std::min(best, took);
      }
    } catch (const Error&) {
      if (context_.broken()) throw;
      return std::numeric_limits<float>::infinity();
    }
    return best;
  }

 private:
  void* place(const View& view) {
    buffers_.push_back(context_.allocate(view.bytes()));
    ripple(context_, buffers_.back().data(), view);
    return buffers_.back().data();
  }

  const Context& context_;
  std::vector<Buffer> buffers_;
  ConvMemory memory_;
  Handle<cudaEvent_t> before_, after_;
};

}  // namespace

Plan::Plan(std::shared_ptr<const Descriptors> graph, Descriptor plan)
    : graph_(std::move(graph)), plan_(std::move(plan)) {
  std::int64_t bytes = 0, count = 0;
  check(cudnnBackendGetAttribute(plan_.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                 CUDNN_TYPE_INT64, 1, &count, &bytes),
        "asking cuDNN for an engine's workspace");
  workspace_ = static_cast<std::size_t>(bytes);
}

void Runner::run(const Context& context, const ConvMemory& memory, const char* what) {
  context.enter();
  void* workspace = context.workspace();
  if (!pack_ || !(memory == memory_) || workspace != workspace_) {
    const std::array<std::int64_t, 4> numbers{x_number, weights_number, y_number, bias_number};
    const std::array<void*, 4> pointers{memory.x, memory.weights, memory.y, memory.bias};
    const std::int64_t count = memory.bias == nullptr ? 3 : 4;
    pack_ = make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    set(pack_, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, numbers.data(), count);
    set(pack_, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, pointers.data(), count);
    set(pack_, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace);
    finish(pack_);
    memory_ = memory;
    workspace_ = workspace;
  }
  check(cudnnBackendExecute(context.dnn(), plan_->plan_.get(), pack_.get()), what);
}

void Plans::say_once(const std::string& text) {
  if (said_.insert(text).second) std::fprintf(stderr, "%s\n", text.c_str());
}

std::shared_ptr<const Plan> Plans::fastest(const ConvGraph& graph) {
  const std::string key = graph.key();
  const auto known = plans_.find(key);
  if (known != plans_.end()) return known->second;

  auto parts = std::make_shared<Descriptors>();
  try {
    Descriptor described = describe(*context_, graph, *parts);
    parts->push_back(std::move(described));
  } catch (const Error&) {  // Some versions refuse here what others have no engine for.
    return plans_[key] = nullptr;
  }
  const std::size_t whole = parts->size() - 1;
  std::vector<std::shared_ptr<const Plan>> usable;
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    if (!usable.empty()) break;
    for (Descriptor& configuration : proposals((*parts)[whole], mode)) {
      if (usable.size() == timed_at_most) break;
      if (!is_allowed(configuration, context_->precision())) continue;
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
      const float took = trial.time(plan);
      if (took < least) {
        least = took;
        best = plan;
      }
    }
  }
  return plans_[key] = best;
}

}  // namespace duplex::cudnn
