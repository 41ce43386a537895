// Finds the best way to train in a situation: every way, on so many of the machines as are best.
#pragma once
#include <cstddef>
#include <vector>

#include "tools/planning/evaluation.h"

namespace duplex::tools {

struct SearchResult {
  int alone = 0;             ///< The machine that is fastest alone.
  double image_alone = 0.0;  ///< Seconds an image that it takes.
  /// Every way, each with the number of workers that it does best with; the fastest first.
  std::vector<Evaluation> ways;
  /// All that was simulated, in the order of ways and numbers of workers.
  std::vector<Evaluation> all;
  /// Ways that were left out, each with the number of workers that needs the least memory.
  std::vector<TooLarge> too_large;
  std::size_t too_large_alone = 0;  ///< What one machine alone needs; 0: it has that.

  /// The fastest whose result is that of one machine, in the usual order, with even shards, without
  /// semaphores and uncoded unless others are clearly faster; null: there is none.
  const Evaluation* best_exact() const;
  /// Whether training in parallel pays with it.
  bool pays() const { return best_exact() != nullptr && best_exact()->speedup > 1.0; }
  /// The evaluation of a name as Strategy has it; of a way alone, the best. Null: there is none.
  const Evaluation* find(const std::string& name) const;
};

/// Simulates on all processors. Throws Error(Exit::usage) for fewer than two machines.
SearchResult search(const Situation& situation);

/// The machines, by rank, for so many workers: the fastest ones, and for a central server the one
/// with the fastest link, the slowest of them. Several choices where computing and links disagree;
/// none: there are too few.
std::vector<std::vector<int>> choices(const Situation& situation, const ParallelSpec& parallel,
                                      int workers);

/// The fastest exact way is as fast as one machine there.
struct BreakEven {
  double links = 1.0;  ///< All links are so many times as fast; below 1, they are slower.
  /// Links as they are do with a batch so many times as large: some way that pays exchanges weights
  /// and gradients only, whose bytes do not grow with the batch as those of maps and factors do.
  bool batch = false;
};
/// Returns nothing where no link is fast enough.
std::optional<BreakEven> break_even(const Situation& situation, const SearchResult& found);

}  // namespace duplex::tools
