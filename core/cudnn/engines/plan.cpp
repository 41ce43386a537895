#include "core/cudnn/engines/plan.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <optional>
#include <utility>

#include "core/cudnn/cache.h"
#include "core/cudnn/engines/engines.h"
#include "core/cudnn/engines/trial.h"
#include "core/cudnn/layout.h"
#include "core/error.h"

namespace duplex::cudnn {
namespace {

/// At most so many engines are timed, those that come first in cuDNN's own estimate.
constexpr std::size_t timed_at_most = 12;
/// cuDNN proposes an engine in several configurations. If one takes this many times as long as the
/// fastest so far, the others are not tried: in float32 a large network would wait minutes for
/// them.
constexpr float far_slower = 8.0F;

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

Plans::Plans(ContextPtr context)
    : context_(std::move(context)),
      folder_(cache_folder()),
      choices_(folder_,
               context_->gpu() + ", " + Context::cudnn() + ", " + name_of(context_->precision())) {}

void Plans::say_once(const std::string& text, const std::string& more) {
  if (said_.insert(text).second) std::fprintf(stderr, "%s%s\n", text.c_str(), more.c_str());
}

std::shared_ptr<const Plan> Plans::fastest_of(const std::vector<std::shared_ptr<Plan>>& usable,
                                              const ConvGraph& graph) {
  Trial trial(*context_, graph);
  std::vector<std::pair<float, std::shared_ptr<Plan>>> timed;
  float best_time = std::numeric_limits<float>::infinity();
  std::set<std::int64_t> slow;
  for (const auto& plan : usable) {
    if (slow.count(plan->engine()) != 0) continue;
    const float took = trial.time(plan, best_time);
    if (took == std::numeric_limits<float>::infinity()) continue;
    if (took > far_slower * best_time && plan->engine() != Engine::unknown)
      slow.insert(plan->engine());
    best_time = std::min(best_time, took);
    timed.emplace_back(took, plan);
  }
  const auto faster = [](const auto& a, const auto& b) { return a.first < b.first; };
  std::stable_sort(timed.begin(), timed.end(), faster);
  if (timed.size() > 1) {  // Something may have disturbed either of the first two.
    const auto second = timed.begin() + 1;
    for (auto again = timed.begin(); again <= second; ++again)
      again->first =
          std::min(again->first, trial.time(again->second, std::numeric_limits<float>::infinity()));
    std::stable_sort(timed.begin(), second + 1, faster);
  }
  for (const auto& [took, plan] : timed) {
    const double error = trial.error(plan);
    if (error <= allowed_error(context_->precision())) {
      plan->place_.milliseconds = took;
      return plan;
    }
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.2g", error);
    say_once(
        "cuda: an engine of " + Context::cudnn() + " computes a wrong " + graph.text(),
        std::string(", its error is ") + text.data() + " of the norm; another takes its place");
  }
  return nullptr;
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
  if (auto plan = remembered(graph, target, parts)) return plans_[key] = std::move(plan);
  const TimingLock alone(folder_, context_->gpu() + " " + context_->place());
  std::vector<std::shared_ptr<Plan>> usable;
  for (Engine& engine : engines_of((*parts)[whole], target, context_->precision(),
                                   workspace_limit(context_->memory_bytes()), timed_at_most)) {
    parts->push_back(std::move(engine.configuration));
    usable.push_back(
        std::make_shared<Plan>(parts, std::move(engine.plan), engine.workspace, engine.place));
  }
  std::shared_ptr<const Plan> fastest = usable.empty() ? nullptr : fastest_of(usable, graph);
  if (fastest) choices_.keep(key, fastest->place_);
  return plans_[key] = std::move(fastest);
}

/// The plan of the engine that was the fastest when it was timed before, if it is still there and
/// computes the right thing; else null. `parts` ends with the graph.
std::shared_ptr<const Plan> Plans::remembered(const ConvGraph& graph, const Target& target,
                                              const std::shared_ptr<Descriptors>& parts) {
  const std::optional<Choice> choice = choices_.find(graph.key());
  if (!choice) return nullptr;
  auto engine = engine_at(*choice, parts->back(), target, context_->precision(),
                          workspace_limit(context_->memory_bytes()));
  if (!engine) return nullptr;
  parts->push_back(std::move(engine->configuration));
  const auto plan =
      std::make_shared<Plan>(parts, std::move(engine->plan), engine->workspace, *choice);
  Trial trial(*context_, graph);
  trial.prepare(*plan);
  return trial.error(plan) <= allowed_error(context_->precision()) ? plan : nullptr;
}

}  // namespace duplex::cudnn
