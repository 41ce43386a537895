#include "core/cudnn/engines/plan.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <vector>

#include "core/cudnn/engines/engines.h"
#include "core/cudnn/kernels/kernels.h"
#include "core/error.h"

namespace duplex::cudnn {
namespace {

/// At most so many engines are timed, those that come first in cuDNN's own estimate.
constexpr std::size_t timed_at_most = 12;
constexpr int timed_runs = 3;
/// An engine that takes this many times as long as the fastest is not run again.
constexpr float hopeless = 2.0F;

/// Returns the bytes that an engine may take beside the tensors. In NCHW, engines that use tensor
/// cores need room for x and y in another order: more than a GiB for VGG's first ones at batch 64.
std::size_t workspace_limit(const Context& context) {
  return std::max(std::size_t{512} << 20, context.memory_bytes() / 16);
}

/// Times the engines of a graph on tensors of its own.
class EngineTimer {
 public:
  EngineTimer(const Context& context, const ConvGraph& graph) : context_(context) {
    memory_.x = allocate(graph.x);
    memory_.weights = allocate(graph.weights);
    memory_.y = allocate(graph.y);
    if (graph.bias) memory_.bias = allocate(graph.bias_view());
    cudaEvent_t made = nullptr;
    check(cudaEventCreate(&made), "timing an engine");
    before_.reset(made);
    check(cudaEventCreate(&made), "timing an engine");
    after_.reset(made);
  }

  /// Returns the milliseconds of the fastest of `timed_runs` runs, or infinity where the engine
  /// fails. `best_so_far` is the time of the best engine before it.
  float time(const std::shared_ptr<const Plan>& plan, float best_so_far) {
    float best = std::numeric_limits<float>::infinity();
    Runner runner(plan);
    try {
      context_.grow(workspace_, plan->workspace());
      const auto run = [&] {
        runner.run(context_, memory_, workspace_.data(), "trying an engine");
      };
      run();  // This run loads the kernels.
      for (int i = 0; i < timed_runs && (i == 0 || best < hopeless * best_so_far); ++i) {
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
  void* allocate(const View& view) {
    buffers_.push_back(context_.allocate(view.bytes()));
    test_pattern(context_, buffers_.back().data(), view);
    return buffers_.back().data();
  }

  const Context& context_;
  std::vector<Buffer> buffers_;
  Buffer workspace_;
  ConvMemory memory_;
  Handle<cudaEvent_t> before_, after_;
};

}  // namespace

void Runner::run(const Context& context, const ConvMemory& memory, void* workspace,
                 const char* what) {
  context.enter();
  if (!pack_ || !(memory == memory_) || workspace != workspace_) {
    const std::array<std::int64_t, 4> numbers{x_id, weights_id, y_id, bias_id};
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

  Target target;
  target.handle = context_->dnn();
  auto parts = std::make_shared<Descriptors>();
  try {
    Descriptor described = describe(target, graph, *parts);
    parts->push_back(std::move(described));
  } catch (const Error&) {  // Some versions refuse here what others find no engine for.
    return plans_[key] = nullptr;
  }
  const std::size_t whole = parts->size() - 1;
  std::vector<std::shared_ptr<const Plan>> usable;
  for (Engine& engine : engines_of((*parts)[whole], target, context_->precision(),
                                   workspace_limit(*context_), timed_at_most)) {
    parts->push_back(std::move(engine.configuration));
    usable.push_back(std::make_shared<const Plan>(parts, std::move(engine.plan), engine.workspace));
  }

  std::shared_ptr<const Plan> best;
  if (!usable.empty()) {
    EngineTimer timer(*context_, graph);
    float best_time = std::numeric_limits<float>::infinity();
    for (const auto& plan : usable) {
      const float took = timer.time(plan, best_time);
      if (took < best_time) {
        best_time = took;
        best = plan;
      }
    }
  }
  if (best) context_->reserve(best->workspace());
  return plans_[key] = best;
}

}  // namespace duplex::cudnn
