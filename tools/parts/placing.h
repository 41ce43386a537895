// Places a network on ranks by a strategy, for those who train it so.
#pragma once
#include <cstdint>
#include <string>

#include "layers/placement/placement.h"
#include "tools/partition/cut.h"

namespace duplex::tools {

/// Tiles as fine as so many ranks need. Finer tiles fit better together, and take longer; ranks
/// that are not alike need finer ones.
TileSpec usual_tiles(std::int64_t batch, const Speeds& speeds);

struct PlacingSpec {
  std::string strategy;
  std::int64_t samples = 0;        ///< Of a micro-batch.
  std::int64_t micro_batches = 1;  ///< Of a step.
  Speeds speeds;                   ///< By rank.
  std::string stages;              ///< Of a pipeline (stage_list.h).
  std::vector<double> seconds;     ///< TileSpec::seconds.
  std::uint64_t seed = 1;
  int threads = 1;
};

/// The same on every rank. Where a pipeline has fewer stages than ranks, ranks in a row share a
/// stage, each with some of the samples. Throws Error(usage) where the network cannot be
/// cut so.
Placement place(const Model& model, const PlacingSpec& spec);

}  // namespace duplex::tools
