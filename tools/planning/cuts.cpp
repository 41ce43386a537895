#include "tools/planning/cuts.h"

#include <algorithm>
#include <limits>

#include "core/error.h"
#include "layers/placement/units.h"
#include "tools/partition/strategies.h"
#include "tools/planning/pipelines.h"
#include "tools/planning/step_bytes.h"

namespace duplex::tools {
namespace {

/// Hypergraphs are tried for so many machines at most.
constexpr int few = 8;
/// Pipelines are also looked for with factors where data parallelism sends less than this part of
/// its bytes with them.
constexpr double worth_factors = 0.9;
constexpr std::uint64_t most_micro_batches = 64;
/// So many pipelines have their stages moved, at most as often as this. A way is better if it takes
/// this part of another's time, or less.
constexpr std::size_t contenders = 2;
constexpr int most_moves = 12;
constexpr double better = 0.995;

TileSpec one_tile_a_unit() {
  TileSpec spec;
  spec.batch = spec.shards = spec.blocks = 1;
  return spec;
}

class CutSearch {
 public:
  CutSearch(const Situation& situation, const std::vector<int>& machines, double alone)
      : situation_(situation),
        machines_(machines),
        alone_(alone),
        tiles_(situation.scenario.model, one_tile_a_unit()),
        images_(static_cast<std::uint64_t>(situation.scenario.batch) * machines.size()) {
    std::vector<double> seconds;
    for (const int machine : machines) seconds.push_back(situation.slowness(machine));
    shares_ = proportional_shares(seconds, true);
    for (const double each : seconds) speeds_.push_back(shares_.empty() ? 1.0 : 1.0 / each);
  }

  std::vector<CutCandidate> candidates() const {
    std::vector<ParallelSpec> ways;
    const std::vector<Pipeline> pipelines = even_pipelines();
    for (std::uint64_t m = 2; m <= most_micro_batches; m *= 2)
      for (const ParallelSpec& way : ways_of(pipelines, m, Factors::off)) ways.push_back(way);
    for (const std::string& strategy : cutting_strategies()) {
      if (strategy == "pipeline" || strategy == "hypergraph") continue;
      for (const ParallelSpec& way : ways_of(strategy, false)) ways.push_back(way);
    }
    double rate = std::numeric_limits<double>::infinity();
    for (const int machine : machines_)
      rate = std::min(rate, situation_.machines[static_cast<std::size_t>(machine)].rate);
    std::vector<CutCandidate> found;
    for (const ParallelSpec& way : ways) try {
        Evaluation its;
        its.strategy = {way, machines_};
        its.normalised = normalised_by(situation_, its.strategy);
        const StepBytes bytes = step_bytes(situation_, its.strategy);
        if (its.exact())
          found.push_back({its.strategy, std::max(bytes.worker_out, bytes.worker_in) / rate /
                                             static_cast<double>(images_)});
      } catch (const Error& error) {
        if (error.code != Exit::usage) throw;  // It cannot be cut so.
      }
    return found;
  }

  FoundCuts find() {
    FoundCuts cuts;
    std::vector<Evaluation>& found = cuts.found;
    for (const std::string& strategy : cutting_strategies()) {
      const auto best =
          strategy == "pipeline" ? best_pipeline(Factors::off) : best_of_kind(strategy);
      if (!best) continue;
      if (!fits(*best)) {
        cuts.too_large.push_back({best->strategy, situation_.memory(best->strategy)});
        continue;
      }
      found.push_back(*best);
      add_fewer_bytes(*best, found);
      if (strategy == "pipeline") add_factored_pipeline(best->image, found);
    }
    for (Evaluation& each : found) each.normalised = normalised_by(situation_, each.strategy);
    std::stable_sort(found.begin(), found.end(), is_faster);
    return cuts;
  }

 private:
  /// With factors other pipelines are the best: those whose last stages have several ranks. Adds
  /// the best that is faster than `slowest`.
  void add_factored_pipeline(double slowest, std::vector<Evaluation>& found) const {
    ParallelSpec plain, factored;
    factored.factors = Factors::automatic;
    const double part = step_bytes(situation_, {factored, machines_}).worker_out /
                        step_bytes(situation_, {plain, machines_}).worker_out;
    if (part > worth_factors) return;
    const auto best = best_pipeline(Factors::automatic, slowest * better);
    if (!best || !fits(*best) || best->image > slowest * better) return;
    found.push_back(*best);
    add_fewer_bytes(*best, found);
  }
  /// Adds the same cut with codings and factors, each where it makes it faster.
  void add_fewer_bytes(const Evaluation& best, std::vector<Evaluation>& found) const {
    for (const net::Coding coding :
         {net::Coding::float32, net::Coding::lossless, net::Coding::bf16}) {
      double least = best.image;
      for (const Factors factors : {Factors::off, Factors::automatic}) {
        ParallelSpec fewer = best.strategy.parallel;
        fewer.wire = {coding, coding};
        fewer.factors = factors;
        const bool shares_none =
            factors == Factors::automatic && !situation_.spec_of({fewer, machines_}, 1).factors;
        if (shares_none || fewer.is_variant_of(best.strategy.parallel)) continue;
        for (Evaluation& each : evaluate({fewer}, least * better)) {
          if (each.image >= least * better || !fits(each)) continue;
          least = each.image;
          found.push_back(std::move(each));
        }
      }
    }
  }
  /// Leaves out those that need more than `slowest` seconds an image in any case.
  std::vector<Evaluation> evaluate(const std::vector<ParallelSpec>& ways,
                                   double slowest = unbounded) const {
    std::vector<Strategy> strategies;
    for (const ParallelSpec& way : ways) {
      strategies.push_back({way, machines_});
      if (shares_.empty() || !way.shares.empty()) continue;
      strategies.push_back(strategies.back());
      strategies.back().parallel.shares = shares_;
    }
    std::vector<Evaluation> found;
    for (auto& each : evaluate_possible(situation_, strategies, alone_, false, slowest))
      if (each) found.push_back(std::move(*each));
    std::stable_sort(found.begin(), found.end(), is_faster);
    return found;
  }
  bool fits(const Evaluation& each) const { return situation_.lacking(each.strategy) == 0; }
  /// Returns whether `a` lacks less memory than `b`, or takes less than `part` of its time.
  bool is_better(const Evaluation& a, const Evaluation& b, double part) const {
    const std::size_t lacks = situation_.lacking(a.strategy),
                      other = situation_.lacking(b.strategy);
    return lacks != other ? lacks < other : a.image < b.image * part;
  }
  /// Returns the fastest that fits into memory; if none does, the one that lacks the least.
  std::optional<Evaluation> best_of(const std::vector<ParallelSpec>& ways,
                                    double slowest = unbounded) const {
    std::vector<Evaluation> found = evaluate(ways, slowest);
    for (const Evaluation& each : found)
      if (fits(each)) return each;
    const auto least = std::min_element(
        found.begin(), found.end(), [this](const Evaluation& a, const Evaluation& b) {
          return situation_.lacking(a.strategy) < situation_.lacking(b.strategy);
        });
    if (least == found.end()) return std::nullopt;
    return *least;
  }
  bool divides(std::uint64_t micro_batches, int ranks) const {
    return images_ % micro_batches == 0 &&
           images_ / micro_batches >= static_cast<std::uint64_t>(ranks);
  }

  /// The partitioner takes its time: hypergraphs are tried for all machines, if these are few, with
  /// one micro-batch.
  std::optional<Evaluation> best_of_kind(const std::string& strategy) const {
    const bool partitioned = strategy == "hypergraph";
    const auto machines = static_cast<int>(machines_.size());
    if (partitioned && (machines > few || machines_.size() < situation_.machines.size()))
      return std::nullopt;
    return best_of(ways_of(strategy, partitioned));
  }
  std::vector<ParallelSpec> ways_of(const std::string& strategy, bool partitioned) const {
    std::vector<ParallelSpec> ways;
    // The more micro-batches, and the fewer of them at a time, the less memory.
    const std::uint64_t most = partitioned ? 1 : limited() ? most_micro_batches : 8;
    for (std::uint64_t m = 1; m <= most; m *= 2)
      for (const std::uint64_t in_flight : in_flights()) {
        if (!divides(m, 1) || (m == 1 && in_flight != usual_in_flight)) continue;
        ParallelSpec way;
        way.strategy = strategy;
        way.micro_batches = m;
        way.in_flight = in_flight;
        ways.push_back(way);
      }
    return ways;
  }
  bool limited() const { return static_cast<bool>(situation_.memory); }
  std::vector<std::uint64_t> in_flights() const {
    return limited() ? std::vector<std::uint64_t>{usual_in_flight, 1}
                     : std::vector<std::uint64_t>{usual_in_flight};
  }

  static ParallelSpec spec_of(const Pipeline& pipeline, std::uint64_t micro_batches,
                              std::uint64_t in_flight, Factors factors) {
    ParallelSpec way;
    way.strategy = "pipeline";
    way.stages = pipeline.text();
    way.factors = factors;
    way.micro_batches = micro_batches;
    way.in_flight = in_flight;
    return way;
  }

  /// Pipelines whose stages begin where the work is even.
  std::vector<Pipeline> even_pipelines() const {
    std::vector<Pipeline> pipelines;
    for (const std::vector<int>& ranks : stage_sizes(static_cast<int>(machines_.size()))) {
      if (ranks.size() > tiles_.units().count()) continue;
      const Pipeline pipeline(tiles_, ranks, speeds_);
      if (pipeline.possible()) pipelines.push_back(pipeline);
    }
    return pipelines;
  }
  std::vector<ParallelSpec> ways_of(const std::vector<Pipeline>& pipelines, std::uint64_t m,
                                    Factors factors) const {
    std::vector<ParallelSpec> ways;
    for (const Pipeline& pipeline : pipelines) {
      // The linear layers are the last ones, and factors are for ranks that share them.
      if (factors != Factors::off && pipeline.ranks().back() == 1) continue;
      for (const std::uint64_t in_flight : in_flights())
        if (divides(m, pipeline.ranks().front()))
          ways.push_back(spec_of(pipeline, m, in_flight, factors));
    }
    return ways;
  }

  /// Returns pipelines whose stages are to be moved: the fastest that fit into memory; if none
  /// does, those that lack the least.
  std::vector<Evaluation> contenders_of(std::vector<Evaluation> all) const {
    std::vector<Evaluation> chosen;
    const auto choose = [&](const Evaluation& each) {
      const bool known = std::any_of(chosen.begin(), chosen.end(), [&](const Evaluation& other) {
        return other.strategy.parallel.stages == each.strategy.parallel.stages;
      });
      if (!known && chosen.size() < contenders) chosen.push_back(each);
    };
    for (const Evaluation& each : all)
      if (chosen.size() < contenders && fits(each)) choose(each);
    if (!chosen.empty()) return chosen;
    std::stable_sort(all.begin(), all.end(), [this](const Evaluation& a, const Evaluation& b) {
      return situation_.lacking(a.strategy) < situation_.lacking(b.strategy);
    });
    std::for_each(all.begin(), all.end(), choose);
    return chosen;
  }

  /// Returns the best pipeline of those that may be faster than `slowest`.
  std::optional<Evaluation> best_pipeline(Factors factors, double slowest = unbounded) const {
    const std::vector<Pipeline> pipelines = even_pipelines();
    // Many micro-batches are mostly faster than few, whose floors then tell that they are not.
    std::vector<Evaluation> chosen;
    for (std::uint64_t m = most_micro_batches; m >= 2; m /= 2) {
      const bool found = chosen.size() == contenders &&
                         std::all_of(chosen.begin(), chosen.end(),
                                     [this](const Evaluation& each) { return fits(each); });
      std::vector<Evaluation> all =
          evaluate(ways_of(pipelines, m, factors), found ? chosen.back().image : slowest);
      all.insert(all.end(), chosen.begin(), chosen.end());
      std::stable_sort(all.begin(), all.end(), is_faster);
      chosen = contenders_of(std::move(all));
    }
    std::optional<Evaluation> best;
    for (const Evaluation& each : chosen) {
      const std::string& stages = each.strategy.parallel.stages;
      const auto pipeline = std::find_if(pipelines.begin(), pipelines.end(),
                                         [&](const Pipeline& p) { return p.text() == stages; });
      const Evaluation found = moved(*pipeline, each);
      if (!best || is_better(found, *best, 1.0)) best = found;
    }
    return best;
  }

  /// Moves the stages of a pipeline as long as that makes it better.
  Evaluation moved(Pipeline pipeline, Evaluation best) const {
    for (int move = 0; move < most_moves; ++move) {
      const ParallelSpec& now = best.strategy.parallel;
      std::vector<Pipeline> tried;
      std::vector<ParallelSpec> ways;
      for (std::size_t boundary = 0; boundary < pipeline.boundaries(); ++boundary)
        for (const double by : {-2.0, -1.0, -0.5, 0.5, 1.0, 2.0}) {
          const Pipeline other = pipeline.moved(boundary, by);
          if (!other.possible()) continue;
          tried.push_back(other);
          ways.push_back(spec_of(other, now.micro_batches, now.in_flight, now.factors));
        }
      for (const std::uint64_t in_flight : {now.in_flight / 2, now.in_flight * 2})
        if (in_flight > 0)
          ways.push_back(spec_of(pipeline, now.micro_batches, in_flight, now.factors));
      for (const std::uint64_t m : {now.micro_batches / 2, now.micro_batches * 2})
        if (m > 1 && m <= most_micro_batches && divides(m, pipeline.ranks().front()))
          ways.push_back(spec_of(pipeline, m, now.in_flight, now.factors));
      const auto found = best_of(ways, fits(best) ? best.image * better : unbounded);
      if (!found || !is_better(*found, best, better)) break;
      best = *found;
      for (const Pipeline& each : tried)
        if (each.text() == best.strategy.parallel.stages) pipeline = each;
    }
    return best;
  }

  const Situation& situation_;
  const std::vector<int>& machines_;
  const double alone_;
  const Tiles tiles_;
  const std::uint64_t images_;        ///< Of a step.
  std::vector<std::int64_t> shares_;  ///< By the machines' speeds; empty: they are alike.
  Speeds speeds_;
};

}  // namespace

FoundCuts best_cuts(const Situation& situation, const std::vector<int>& machines, double alone) {
  for (const int machine : machines)
    if (situation.machines[static_cast<std::size_t>(machine)].slots > 1) return {};
  return CutSearch(situation, machines, alone).find();
}

std::vector<CutCandidate> cut_candidates(const Situation& situation,
                                         const std::vector<int>& machines) {
  for (const int machine : machines)
    if (situation.machines[static_cast<std::size_t>(machine)].slots > 1) return {};
  return CutSearch(situation, machines, 1.0).candidates();
}

}  // namespace duplex::tools
