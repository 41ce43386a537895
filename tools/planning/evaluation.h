// What a strategy comes to in a situation, by simulation; and what binds it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/planning/situation.h"

namespace duplex::tools {

/// A strategy that no machine has the memory for.
struct TooLarge {
  Strategy strategy;
  std::size_t bytes = 0;  ///< What it needs.
};

struct Evaluation {
  Strategy strategy;
  double image = 0.0;      ///< Seconds an image, of all workers together.
  double speedup = 0.0;    ///< Over the fastest machine alone (4.23).
  double step = 0.0;       ///< Seconds a step of the first worker, on the average.
  double computing = 0.0;  ///< Of them, the first worker's computing.
  double awaiting = 0.0;   ///< Of them, its waiting for weights.
  /// The speedup by the equations: at worst and at best ((4.4), (4.7), (4.13) to (4.16)), or twice
  /// the same ((4.12), (4.21)), without overlap and with machines that are alike. None: there is no
  /// equation for it.
  std::optional<std::pair<double, double>> equations;
  /// The samples that a worker normalises together, the fewest of any; 0: no layer does.
  std::int64_t normalised = 0;

  /// Returns true if it trains what one machine would: the strategy is exact, and batch
  /// normalisation is not over too few samples for its mean and variance to be those of the data.
  bool exact() const { return strategy.exact() && !normalises_few(); }
  bool normalises_few() const;
};

inline bool is_faster(const Evaluation& a, const Evaluation& b) {
  return a.image < b.image;
}

/// Simulates it. `alone`: seconds an image of the fastest machine alone. `exactly`: with more
/// steps, for strategies that are close to each other.
Evaluation evaluate(const Situation& situation, const Strategy& strategy, double alone,
                    bool exactly);

constexpr double unbounded = std::numeric_limits<double>::infinity();

/// Evaluates them on all processors. None: the network cannot be cut so, or image_floor() says that
/// an image takes longer than `slowest` seconds, so that it was not simulated.
std::vector<std::optional<Evaluation>> evaluate_possible(const Situation& situation,
                                                         const std::vector<Strategy>& strategies,
                                                         double alone, bool exactly,
                                                         double slowest = unbounded);

/// Looks, on all processors, for one of the strategies that is faster than `alone` seconds an image
/// and that `counts`; returns its number. The others are not simulated any more then. `counts` is
/// called on several threads at once.
std::optional<std::size_t> one_that_pays(const Situation& situation,
                                         const std::vector<Strategy>& strategies, double alone,
                                         const std::function<bool(const Strategy&)>& counts);

/// Returns Evaluation::normalised.
std::int64_t normalised_by(const Situation& situation, const Strategy& strategy);

/// Seconds an image of one machine alone, on all of its slots.
double image_alone(const Situation& situation, int machine);

/// The one thing whose being a tenth faster makes most of a difference: "computing", "machine 3's
/// computing", "the links", "machine 0's link", "the owners' adding and updating"; "nothing" where
/// none makes any.
std::string binding(const Situation& situation, const Evaluation& evaluation);
/// Returns that of each, which takes several simulations, on all processors.
std::vector<std::string> bindings(const Situation& situation,
                                  const std::vector<Evaluation>& evaluations);

}  // namespace duplex::tools
