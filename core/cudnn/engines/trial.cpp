#include "core/cudnn/engines/trial.h"

#include <algorithm>
#include <limits>

#include "core/cudnn/kernels/kernels.h"
#include "core/cudnn/kernels/readiness.h"
#include "core/error.h"

namespace duplex::cudnn {
namespace {

constexpr int timed_runs = 3;
/// An engine that takes this many times as long as the fastest is not run again.
constexpr float hopeless = 2.0F;
/// An engine's first run may take so many milliseconds more, for loading its kernels.
constexpr float loading = 100.0F;

}  // namespace

Trial::Trial(const Context& context, const ConvGraph& graph) : context_(context), graph_(graph) {
  memory_.x = allocate(graph.x);
  memory_.weights = allocate(graph.weights);
  memory_.y = allocate(graph.y);
  if (graph.bias) memory_.bias = allocate(graph.bias_view());
}

void* Trial::allocate(const View& view) {
  buffers_.push_back(context_.allocate(view.bytes()));
  test_pattern(context_, buffers_.back().data(), view, buffers_.size());
  return buffers_.back().data();
}

float Trial::time(const std::shared_ptr<const Plan>& plan, float best_so_far) {
  float best = std::numeric_limits<float>::infinity();
  Runner runner(plan);
  try {
    context_.grow(workspace_, plan->workspace());
    const auto run = [&](bool behind_others) {
      if (behind_others) keep_busy(context_);
      const Event before = context_.events().recorded(context_.stream(), Events::Kind::timed);
      runner.run(context_, memory_, workspace_.data(), "trying an engine");
      const Event after = context_.events().recorded(context_.stream(), Events::Kind::timed);
      wait_for(after.get(), "timing an engine");
      float took = 0.0F;
      check(cudaEventElapsedTime(&took, before.get(), after.get()), "timing an engine");
      return took;
    };
    const float first = run(false);
    if (first > loading + hopeless * best_so_far) return first;
    for (int i = 0; i < timed_runs && (i == 0 || best < hopeless * best_so_far); ++i)
      best = std::min(best, run(true));
  } catch (const Error&) {
    if (context_.broken()) throw;
    return std::numeric_limits<float>::infinity();
  }
  return best;
}

double Trial::error(const std::shared_ptr<const Plan>& plan) {
  if (!sample_) sample_.emplace(context_, graph_, memory_);
  sample_->poison();
  try {
    Runner(plan).run(context_, memory_, workspace_.data(), "checking an engine");
    return sample_->error();
  } catch (const Error&) {
    if (context_.broken()) throw;
    return std::numeric_limits<double>::infinity();
  }
}

}  // namespace duplex::cudnn
