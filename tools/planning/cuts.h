// Finds good ways to cut the network over machines, with the simulation as the judge.
#pragma once
#include <vector>

#include "tools/planning/evaluation.h"

namespace duplex::tools {

struct FoundCuts {
  /// The best cut by each strategy, the fastest first, also with packed frames, with 16 bits
  /// and with factors where these are faster.
  std::vector<Evaluation> found;
  /// The cuts that need the least memory, one for each strategy of which no cut that was tried
  /// fits.
  std::vector<TooLarge> too_large;
};

/// Finds cuts that fit into the machines' memory; none where machines have several slots.
/// Pipelines: first all ways to share the machines out among stages, an earlier stage as many as a
/// later one or more, with several numbers of micro-batches, cut where the work is even; then the
/// layers with which the stages of the best begin are moved as long as that makes it faster, or as
/// long as it needs too much memory, less of that. `alone`: as evaluate() has it.
FoundCuts best_cuts(const Situation& situation, const std::vector<int>& machines, double alone);

/// A way to cut the network, and the least seconds an image that its bytes take, where all links
/// are as fast as the situation's slowest.
struct CutCandidate {
  Strategy strategy;
  double image_on_wire = 0.0;
};

/// Returns ways to cut the network over these machines without simulating any: pipelines cut where
/// the work is even, and each other strategy but the partitioner's. Only those that normalise over
/// enough samples to be exact.
std::vector<CutCandidate> cut_candidates(const Situation& situation,
                                         const std::vector<int>& machines);

}  // namespace duplex::tools
