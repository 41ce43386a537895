#include "core/cudnn/engines/candidates.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <utility>

#include "core/cudnn/engines/engines.h"
#include "core/cudnn/engines/plan.h"
#include "core/error.h"

namespace duplex::cudnn {
namespace {

/// At most so many engines are timed, those that come first in cuDNN's own estimate.
constexpr std::size_t timed_at_most = 12;

}  // namespace

Candidates candidates_for(const ConvGraph& graph, const Target& target, const EngineLimits& limits,
                          const std::optional<Choice>& chosen_before) {
  auto parts = std::make_shared<Descriptors>();
  try {
    Descriptor described = describe(target, graph, *parts);
    parts->push_back(std::move(described));
  } catch (const Error&) {  // Some versions refuse here what others find no engine for.
    return {};
  }
  const std::size_t whole = parts->size() - 1;
  Candidates candidates;
  const auto add = [&](Engine& engine, const Choice& place) {
    parts->push_back(std::move(engine.configuration));
    candidates.plans.push_back(
        std::make_shared<Plan>(parts, std::move(engine.plan), engine.workspace, place));
  };
  if (chosen_before) {
    auto engine =
        engine_at(*chosen_before, (*parts)[whole], target, limits.precision, limits.workspace);
    candidates.remembered = engine.has_value();
    if (engine) add(*engine, *chosen_before);
  }
  if (candidates.remembered) return candidates;
  for (Engine& engine :
       engines_of((*parts)[whole], target, limits.precision, limits.workspace, timed_at_most))
    add(engine, engine.place);
  return candidates;
}

std::vector<std::future<Candidates>> made_by_threads(std::size_t count,
                                                     const std::vector<Target>& targets,
                                                     const MakeCandidates& make) {
  using Task = std::packaged_task<Candidates(const Target&)>;
  std::vector<Task> tasks;
  std::vector<std::future<Candidates>> made;
  for (std::size_t i = 0; i < count; ++i) {
    tasks.emplace_back([&make, i](const Target& target) { return make(i, target); });
    made.push_back(tasks.back().get_future());
  }
  std::atomic<std::size_t> next{0};
  const auto work = [&](const Target& target) {
    for (std::size_t i = next++; i < count; i = next++) tasks[i](target);
  };
  std::vector<std::thread> others;
  others.reserve(targets.size());
  try {
    for (std::size_t i = 1; i < std::min(targets.size(), count); ++i)
      others.emplace_back([&work, &target = targets[i]] { work(target); });
  } catch (const std::exception&) {  // Threads or memory run short: who is there does the work.
  }
  work(targets.at(0));
  for (std::thread& other : others) other.join();
  return made;
}

}  // namespace duplex::cudnn
