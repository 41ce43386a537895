#include "tools/planning/search.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <mutex>
#include <numeric>
#include <set>
#include <string>

#include "core/error.h"
#include "tools/planning/cuts.h"
#include "tools/planning/ways.h"

namespace duplex::tools {
namespace {

/// With more machines than this, not every number of workers is tried.
constexpr int few = 12;
/// So many ways that are exact, and so many others, are simulated once more with more steps, so
/// that chance does not decide.
constexpr std::size_t contenders = 8;
/// A network is cut over so many machines at most.
constexpr int most_cut = 32;

/// Numbers of workers that are tried of 2 to `most`.
std::vector<int> numbers_of_workers(int most) {
  std::vector<int> numbers;
  for (int n = 2; n <= most; n = n < few ? n + 1 : std::max(n + 1, n * 5 / 4)) numbers.push_back(n);
  if (!numbers.empty() && numbers.back() != most) numbers.push_back(most);
  return numbers;
}

/// Evaluates strategies that are possible.
std::vector<Evaluation> evaluate_all(const Situation& situation,
                                     const std::vector<Strategy>& strategies, double alone,
                                     bool exactly) {
  std::vector<Evaluation> evaluations;
  for (auto& each : evaluate_possible(situation, strategies, alone, exactly))
    evaluations.push_back(std::move(each.value()));
  return evaluations;
}

/// Shares by speed where the machines of a synchronous strategy differ in it.
std::vector<std::int64_t> shares_by_speed(const Situation& situation, const Strategy& strategy) {
  if (strategy.parallel.sync == net::Sync::none) return {};
  const std::vector<int>& slots = strategy.parallel.slots;
  if (std::adjacent_find(slots.begin(), slots.end(), std::not_equal_to<>()) != slots.end())
    return {};
  std::vector<double> seconds;
  for (std::size_t i = strategy.parallel.central() ? 1 : 0; i < strategy.machines.size(); ++i)
    seconds.push_back(situation.slowness(strategy.machines[i]));
  return proportional_shares(seconds, true);
}

/// Whether every worker has an image of a step.
bool is_possible(const Situation& situation, const Strategy& strategy) {
  const std::int64_t batch = situation.scenario.batch;
  if (strategy.parallel.splits() && batch < strategy.parallel.all_slots(strategy.workers()))
    return false;
  try {
    for (int worker = 0; worker < strategy.workers(); ++worker)
      strategy.parallel.share(batch, worker, strategy.workers());
  } catch (const Error&) {
    return false;
  }
  return true;
}

/// A way on so many workers, with even shares and by speed, on every choice of machines.
std::vector<Strategy> strategies_of(const Situation& situation, const ParallelSpec& parallel,
                                    int workers) {
  std::vector<Strategy> strategies;
  for (const std::vector<int>& machines : choices(situation, parallel, workers)) {
    const std::optional<ParallelSpec> on_them = situation.on(parallel, machines);
    if (!on_them) continue;
    Strategy strategy{*on_them, machines};
    if (is_possible(situation, strategy)) strategies.push_back(strategy);
    strategy.parallel.shares = shares_by_speed(situation, strategy);
    if (!strategy.parallel.shares.empty() && is_possible(situation, strategy))
      strategies.push_back(strategy);
  }
  return strategies;
}

/// Those that machines have the memory for.
std::vector<Strategy> that_fit(const Situation& situation, std::vector<Strategy> strategies,
                               std::vector<TooLarge>* too_large = nullptr) {
  if (!situation.memory) return strategies;
  const auto fits = [&](const Strategy& strategy) {
    const bool fit = situation.lacking(strategy) == 0;
    if (!fit && too_large != nullptr) too_large->push_back({strategy, situation.memory(strategy)});
    return fit;
  };
  strategies.erase(std::stable_partition(strategies.begin(), strategies.end(), fits),
                   strategies.end());
  return strategies;
}

/// Of each way that nothing was found of, the strategy that needs the least.
std::vector<TooLarge> least_of_each(const std::vector<TooLarge>& too_large,
                                    const std::vector<Evaluation>& found) {
  const auto is_way = [](const Strategy& a, const Strategy& b) {
    return a.parallel.is_variant_of(b.parallel);
  };
  std::vector<TooLarge> least;
  for (const TooLarge& each : too_large) {
    if (std::any_of(found.begin(), found.end(),
                    [&](const Evaluation& other) { return is_way(other.strategy, each.strategy); }))
      continue;
    const auto same = std::find_if(least.begin(), least.end(), [&](const TooLarge& other) {
      return is_way(other.strategy, each.strategy);
    });
    if (same == least.end())
      least.push_back(each);
    else if (each.bytes < same->bytes)
      *same = each;
  }
  return least;
}

/// The best of each way, the fastest first.
std::vector<Evaluation> best_of_each(const std::vector<Evaluation>& all) {
  std::vector<Evaluation> best;
  for (const Evaluation& each : all) {
    const auto same = std::find_if(best.begin(), best.end(), [&](const Evaluation& other) {
      return other.strategy.way() == each.strategy.way();
    });
    if (same == best.end())
      best.push_back(each);
    else if (is_faster(each, *same))
      *same = each;
  }
  std::stable_sort(best.begin(), best.end(), is_faster);
  return best;
}

/// Adds cuts over all machines, and over 2, 4, ... of them.
void add_cuts(SearchResult& result, const Situation& situation) {
  const int count = static_cast<int>(situation.machines.size());
  std::vector<TooLarge> too_large;
  std::set<std::string> found;
  for (int workers = 2; workers < 2 * count && workers < 2 * most_cut; workers *= 2) {
    const int most = std::min({workers, count, most_cut});
    for (const std::vector<int>& machines : choices(situation, {}, most)) {
      FoundCuts cuts = best_cuts(situation, machines, result.image_alone);
      for (Evaluation& each : cuts.found) {
        found.insert(each.strategy.parallel.strategy);
        result.all.push_back(std::move(each));
      }
      too_large.insert(too_large.end(), cuts.too_large.begin(), cuts.too_large.end());
    }
  }
  // The cut that needs the least is told for each strategy that fits nowhere.
  std::stable_sort(too_large.begin(), too_large.end(),
                   [](const TooLarge& a, const TooLarge& b) { return a.bytes < b.bytes; });
  for (const TooLarge& each : too_large)
    if (found.insert(each.strategy.parallel.strategy).second) result.too_large.push_back(each);
}

}  // namespace

const Evaluation* SearchResult::best_exact() const {
  // By so much a way has to be faster, for each thing that it has beside the usual ones. The
  // simulation does not tell orders of sending apart any better: on the lab, semaphores that it has
  // 2% faster were 8% slower. That fewer bytes are faster is safe to say.
  constexpr double order = 1.03, coding = 1.01;
  const auto handicapped = [](const Evaluation& each) {
    const ParallelSpec& way = each.strategy.parallel;
    return each.image * (way.is_usual() ? 1.0 : order) *
           (way.wire == net::WireFormat() ? 1.0 : coding) *
           (way.factors == Factors::off ? 1.0 : coding) * (way.cuts() ? order : 1.0);
  };
  const Evaluation* best = nullptr;
  for (const Evaluation& each : ways) {
    if (!each.exact()) continue;
    if (best == nullptr || handicapped(each) < handicapped(*best)) best = &each;
  }
  return best;
}

const Evaluation* SearchResult::find(const std::string& name) const {
  for (const std::vector<Evaluation>* evaluations : {&ways, &all})
    for (const Evaluation& each : *evaluations)
      if (is_named(each.strategy, name)) return &each;
  return nullptr;
}

std::vector<std::vector<int>> choices(const Situation& situation, const ParallelSpec& parallel,
                                      int workers) {
  const int servers = parallel.central() ? 1 : 0;
  const int count = static_cast<int>(situation.machines.size());
  if (workers + servers > count) return {};
  std::vector<int> all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  std::vector<double> slowness;
  for (const int machine : all)
    slowness.push_back(situation.slowness(machine) /
                       situation.machines[static_cast<std::size_t>(machine)].slots);
  const auto rate = [&](int machine) {
    return situation.machines[static_cast<std::size_t>(machine)].rate;
  };
  const auto slow = [&](int machine) { return slowness[static_cast<std::size_t>(machine)]; };
  std::vector<std::vector<int>> found;
  for (const bool by_link : {false, true}) {
    std::vector<int> machines = all, chosen;
    if (parallel.central()) {
      const auto server = std::max_element(machines.begin(), machines.end(), [&](int a, int b) {
        return std::pair(rate(a), slow(a)) < std::pair(rate(b), slow(b));
      });
      chosen.push_back(*server);
      machines.erase(server);
    }
    std::stable_sort(machines.begin(), machines.end(), [&](int a, int b) {
      return by_link ? std::pair(-rate(a), slow(a)) < std::pair(-rate(b), slow(b))
                     : std::pair(slow(a), -rate(a)) < std::pair(slow(b), -rate(b));
    });
    machines.resize(static_cast<std::size_t>(workers));
    std::sort(machines.begin(), machines.end());
    chosen.insert(chosen.end(), machines.begin(), machines.end());
    if (std::find(found.begin(), found.end(), chosen) == found.end()) found.push_back(chosen);
  }
  return found;
}

SearchResult search(const Situation& situation) {
  const int count = static_cast<int>(situation.machines.size());
  if (count < 2) throw Error("a plan is for two machines at least", Exit::usage);
  SearchResult result;
  const auto slowness = [&](int machine) {
    return situation.slowness(machine) /
           situation.machines[static_cast<std::size_t>(machine)].slots;
  };
  for (int machine = 0; machine < count; ++machine)
    if (slowness(machine) < slowness(result.alone)) result.alone = machine;
  result.image_alone = image_alone(situation, result.alone);

  const std::vector<Family> families = all_families();
  std::vector<Strategy> usual, variants;
  for (const Family& family : families)
    for (const int workers : numbers_of_workers(count))
      for (const Strategy& strategy : strategies_of(situation, family.usual, workers)) {
        const bool same = family.usual.factors != Factors::off &&
                          !situation.spec_of(strategy, 1).factors;  // No layer's are fewer bytes.
        if (!same) usual.push_back(strategy);
      }
  std::vector<TooLarge> too_large;
  usual = that_fit(situation, std::move(usual), &too_large);
  result.all = evaluate_all(situation, usual, result.image_alone, false);
  result.too_large = least_of_each(too_large, result.all);
  if (situation.memory) {
    const std::size_t alone = situation.memory({}), has = situation.memory_of({});
    result.too_large_alone = has > 0 && alone > has ? alone : 0;
  }
  for (const Evaluation& best : best_of_each(result.all)) {
    const ParallelSpec& parallel = best.strategy.parallel;
    for (const Family& family : families) {
      if (!family.usual.is_variant_of(parallel)) continue;
      for (ParallelSpec variant : family.variants) {
        variant.shares = parallel.shares;
        variant.slots = parallel.slots;
        variants.push_back({variant, best.strategy.machines});
      }
    }
  }
  variants = that_fit(situation, std::move(variants));
  for (Evaluation& each : evaluate_all(situation, variants, result.image_alone, false))
    result.all.push_back(std::move(each));

  add_cuts(result, situation);

  result.ways = best_of_each(result.all);
  // The verdict is of ways that are exact, and the others are not to take their places.
  std::vector<std::size_t> chosen;
  std::size_t exact = 0, others = 0;
  for (std::size_t i = 0; i < result.ways.size(); ++i)
    if ((result.ways[i].exact() ? exact : others)++ < contenders) chosen.push_back(i);
  std::vector<Strategy> again;
  for (const std::size_t i : chosen) again.push_back(result.ways[i].strategy);
  const std::vector<Evaluation> exactly = evaluate_all(situation, again, result.image_alone, true);
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    Evaluation& way = result.ways[chosen[i]];
    const std::int64_t normalised = way.normalised;
    way = exactly[i];
    way.normalised = normalised;
  }
  std::stable_sort(result.ways.begin(), result.ways.end(), is_faster);
  return result;
}

std::optional<BreakEven> break_even(const Situation& situation, const SearchResult& found) {
  // The number of workers that is best depends on the link, so a few of each way are tried.
  std::vector<Strategy> tried;
  const int count = static_cast<int>(situation.machines.size());
  for (const Family& family : all_families()) {
    if (!Strategy{family.usual, {}}.exact()) continue;
    for (const int workers : {2, (count + 2) / 2, count - (family.usual.central() ? 1 : 0)})
      for (const Strategy& strategy : strategies_of(situation, family.usual, workers))
        tried.push_back(strategy);
  }
  tried = that_fit(situation, std::move(tried));
  std::vector<CutCandidate> cuts;
  for (const int workers : {2, std::min(count, most_cut)})
    for (const std::vector<int>& machines : choices(situation, {}, workers))
      for (CutCandidate& each : cut_candidates(situation, machines))
        cuts.push_back(std::move(each));
  std::stable_sort(cuts.begin(), cuts.end(), [](const CutCandidate& a, const CutCandidate& b) {
    return a.image_on_wire < b.image_on_wire;
  });
  // Returns whether one of these pays, and puts it at their beginning: with links a little slower
  // it will be the first to ask.
  const auto one_pays = [&](const Situation& faster, std::vector<Strategy>& strategies) {
    const auto paying =
        one_that_pays(faster, strategies, found.image_alone, [](auto&) { return true; });
    if (paying)
      std::rotate(strategies.begin(), strategies.begin() + *paying,
                  strategies.begin() + *paying + 1);
    return paying.has_value();
  };
  const auto with_links = [&](double factor) {
    Situation faster = situation;
    for (Machine& machine : faster.machines) machine.rate *= factor;
    return faster;
  };
  const auto at = [&](double factor) {
    std::vector<Strategy> dense = tried;
    dense.erase(
        std::remove_if(dense.begin(), dense.end(),
                       [](const Strategy& each) { return each.parallel.factors != Factors::off; }),
        dense.end());
    return BreakEven{factor, one_pays(with_links(factor), dense)};
  };
  const auto pays = [&](double factor) {
    const Situation faster = with_links(factor);
    if (one_pays(faster, tried)) return true;
    std::vector<Strategy> fast_enough;
    for (const CutCandidate& cut : cuts)
      if (cut.image_on_wire / factor < found.image_alone) fast_enough.push_back(cut.strategy);
    std::mutex one_at_a_time;  // What tells memory is not made for several threads.
    const auto fits = [&](const Strategy& cut) {
      const std::lock_guard lock(one_at_a_time);
      return situation.lacking(cut) == 0;
    };
    return one_that_pays(faster, fast_enough, found.image_alone, fits).has_value();
  };
  constexpr double widest = 1e6, close = 1.02;
  double low = 1.0, high = 1.0;  // It pays at `high`, and not at `low`.
  if (pays(1.0)) {
    for (low = 0.5; pays(low); low /= 2.0) {
      if (low < 1.0 / widest) return at(low);
      high = low;
    }
  } else {
    for (high = 2.0; !pays(high); high *= 2.0) {
      if (high > widest) return std::nullopt;
      low = high;
    }
  }
  while (high > low * close) {
    const double middle = std::sqrt(low * high);
    (pays(middle) ? high : low) = middle;
  }
  return at(high);
}

}  // namespace duplex::tools
