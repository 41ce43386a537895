#include "core/cudnn/plan.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <optional>
#include <vector>

#include "core/cudnn/kernels.h"
#include "core/error.h"

namespace duplex::cudnn {
namespace {

/// Of what cuDNN proposes, in the order of its own estimate, so many are timed; of those that it
/// compiles when they are asked for, which takes up to a second each, fewer.
constexpr std::size_t timed_at_most = 12, compiled_at_most = 2;
constexpr int timed_runs = 3;
/// One that takes so many times as long as the fastest is not run again.
constexpr float hopeless = 2.0F;

/// Bytes that an engine may take beside the tensors. In NCHW those that use tensor cores need room
/// for x and y in another order, 1.5 GiB for VGG's first ones at batch 64.
std::size_t workspace_limit(const Context& context) {
  return std::max(std::size_t{512} << 20, context.memory_bytes() / 16);
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
  if (cudnnBackendGetAttribute(heuristic.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                               CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &count,
                               raw.data()) != CUDNN_STATUS_SUCCESS)
    return {};
  configurations.resize(static_cast<std::size_t>(count));
  return configurations;
}

/// Null: cuDNN does not say.
Descriptor engine_of(const Descriptor& configuration) {
  Descriptor engine = make(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t raw = engine.get();
  std::int64_t count = 0;
  if (cudnnBackendGetAttribute(configuration.get(), CUDNN_ATTR_ENGINECFG_ENGINE,
                               CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count,
                               &raw) != CUDNN_STATUS_SUCCESS)
    engine.reset();
  return engine;
}

/// What cuDNN notes of an engine, of at most `kinds` kinds of notes. None: it does not say.
template <class Note>
std::optional<std::vector<Note>> notes_of(const Descriptor& engine,
                                          cudnnBackendAttributeName_t name,
                                          cudnnBackendAttributeType_t type, std::int64_t kinds) {
  std::vector<Note> notes(static_cast<std::size_t>(kinds));
  std::int64_t count = 0;
  if (cudnnBackendGetAttribute(engine.get(), name, type, kinds, &count, notes.data()) !=
      CUDNN_STATUS_SUCCESS)
    return std::nullopt;
  notes.resize(static_cast<std::size_t>(std::min(count, kinds)));
  return notes;
}

/// The same bits every time, no more rounding than a sum has, and none of the inputs but what the
/// precision says.
bool is_allowed(const Descriptor& engine, Precision precision) {
  const auto notes = notes_of<cudnnBackendNumericalNote_t>(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                                           CUDNN_TYPE_NUMERICAL_NOTE,
                                                           CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  if (!notes) return false;
  const bool strict = precision == Precision::float32;
  return std::none_of(notes->begin(), notes->end(), [&](cudnnBackendNumericalNote_t note) {
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

/// Whether cuDNN compiles it when it is asked for.
bool is_compiled_here(const Descriptor& engine) {
#if CUDNN_VERSION >= 8300
  const auto notes = notes_of<cudnnBackendBehaviorNote_t>(engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE,
                                                          CUDNN_TYPE_BEHAVIOR_NOTE,
                                                          CUDNN_BEHAVIOR_NOTE_TYPE_COUNT);
  return notes && std::find(notes->begin(), notes->end(),
                            CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION) != notes->end();
#else
  static_cast<void>(engine);
  return false;
#endif
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

  /// Milliseconds of the fastest of some runs; infinite where the engine fails. `least`: of the
  /// best so far.
  float time(const std::shared_ptr<const Plan>& plan, float least) {
    float best = std::numeric_limits<float>::infinity();
    Runner runner(plan);
    try {
      context_.grow(workspace_, plan->workspace());
      const auto run = [&] {
        runner.run(context_, memory_, workspace_.data(), "trying an engine");
      };
      run();  // Loads the kernels.
      for (int i = 0; i < timed_runs && (i == 0 || best < hopeless * least); ++i) {
        check(cudaEventRecord(before_.get(), context_.stream()), "timing an engine");
        run();
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
  Buffer workspace_;
  ConvMemory memory_;
  Handle<cudaEvent_t> before_, after_;
};

/// Bytes; none: cuDNN does not say.
std::optional<std::size_t> workspace_of(const Descriptor& plan) {
  std::int64_t bytes = 0, count = 0;
  if (cudnnBackendGetAttribute(plan.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                               CUDNN_TYPE_INT64, 1, &count, &bytes) != CUDNN_STATUS_SUCCESS)
    return std::nullopt;
  return static_cast<std::size_t>(bytes);
}

}  // namespace

void Runner::run(const Context& context, const ConvMemory& memory, void* workspace,
                 const char* what) {
  context.enter();
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
  std::size_t compiled = 0;
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    for (Descriptor& configuration : proposals((*parts)[whole], mode)) {
      if (usable.size() == timed_at_most) break;
      const Descriptor engine = engine_of(configuration);
      if (!engine || !is_allowed(engine, context_->precision())) continue;
      if (is_compiled_here(engine) && ++compiled > compiled_at_most) continue;
      Descriptor made = plan_of(*context_, configuration);
      const auto workspace = made ? workspace_of(made) : std::nullopt;
      if (!workspace || *workspace > workspace_limit(*context_)) continue;
      parts->push_back(std::move(configuration));
      usable.push_back(std::make_shared<const Plan>(parts, std::move(made), *workspace));
    }
  }

  std::shared_ptr<const Plan> best;
  if (!usable.empty()) {
    Trial trial(*context_, graph);
    float least = std::numeric_limits<float>::infinity();
    for (const auto& plan : usable) {
      const float took = trial.time(plan, least);
      if (took < least) {
        least = took;
        best = plan;
      }
    }
  }
  if (best) context_->reserve(best->workspace());
  return plans_[key] = best;
}

}  // namespace duplex::cudnn
