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
#include "core/device.h"
#include "core/error.h"

namespace duplex::cudnn {
namespace {

/// cuDNN proposes an engine in several configurations. If one takes this many times as long as the
/// fastest so far, the others are not tried: in float32 a large network would wait minutes for
/// them.
constexpr float far_slower = 8.0F;
/// Each thread that has engines compiled takes memory of the host for cuDNN's compiler, and some of
/// the GPU for its handle.
constexpr std::size_t threads_at_most = 16;

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

Plans::Plans(ContextPtr context, int threads)
    : context_(std::move(context)),
      folder_(cache_folder()),
      choices_(folder_,
               context_->gpu() + ", " + Context::cudnn() + ", " + name_of(context_->precision())),
      limits_{context_->precision(), workspace_limit(context_->memory_bytes())},
      threads_(static_cast<std::size_t>(threads > 0 ? threads : usable_cores())) {}

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

void Plans::prepare(const std::vector<ConvGraph>& graphs) {
  prepared_.clear();
  std::vector<std::pair<std::string, const ConvGraph*>> unknown;
  std::set<std::string> seen;
  for (const ConvGraph& graph : graphs) {
    std::string key = graph.key();
    if (plans_.count(key) == 0 && seen.insert(key).second)
      unknown.emplace_back(std::move(key), &graph);
  }
  if (unknown.empty()) return;
  context_->enter();
  auto made = made_by_threads(unknown.size(), targets(unknown.size()),
                              [&](std::size_t i, const Target& target) {
                                context_->enter();
                                const auto& [key, graph] = unknown[i];
                                return candidates_for(*graph, target, limits_, choices_.find(key));
                              });
  for (std::size_t i = 0; i < made.size(); ++i) prepared_[unknown[i].first] = std::move(made[i]);
}

std::vector<Target> Plans::targets(std::size_t at_most) {
  const std::size_t wanted = std::min({at_most, threads_, threads_at_most});
  while (handles_.size() + 1 < wanted) {
    cudnnHandle_t handle = nullptr;
    if (cudnnCreate(&handle) != CUDNN_STATUS_SUCCESS) {
      cudaGetLastError();  // Else the next call would report it.
      break;
    }
    handles_.emplace_back(handle);
  }
  std::vector<Target> targets(1);
  targets[0].handle = context_->dnn();
  for (const Handle<cudnnHandle_t>& handle : handles_) {
    if (targets.size() == wanted) break;
    targets.emplace_back();
    targets.back().handle = handle.get();
  }
  return targets;
}

Candidates Plans::candidates(const ConvGraph& graph, const std::string& key) {
  const auto prepared = prepared_.find(key);
  if (prepared == prepared_.end()) return made_anew(graph, choices_.find(key));
  std::future<Candidates> made = std::move(prepared->second);
  prepared_.erase(prepared);
  return made.get();
}

Candidates Plans::made_anew(const ConvGraph& graph, const std::optional<Choice>& before) const {
  Target target;
  target.handle = context_->dnn();
  return candidates_for(graph, target, limits_, before);
}

std::shared_ptr<const Plan> Plans::fastest(const ConvGraph& graph) {
  const std::string key = graph.key();
  const auto known = plans_.find(key);
  if (known != plans_.end()) return known->second;

  Candidates usable = candidates(graph, key);
  if (usable.remembered) {
    if (is_right(usable.plans[0], graph)) return plans_[key] = usable.plans[0];
    usable = made_anew(graph, {});
  }
  if (usable.plans.empty()) return plans_[key] = nullptr;
  const TimingLock alone(folder_, context_->gpu() + " " + context_->place());
  std::shared_ptr<const Plan> fastest = fastest_of(usable.plans, graph);
  if (fastest) choices_.keep(key, fastest->place_);
  return plans_[key] = std::move(fastest);
}

bool Plans::is_right(const std::shared_ptr<const Plan>& plan, const ConvGraph& graph) const {
  Trial trial(*context_, graph);
  trial.prepare(*plan);
  return trial.error(plan) <= allowed_error(context_->precision());
}

}  // namespace duplex::cudnn
