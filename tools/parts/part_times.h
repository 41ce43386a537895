// Finds the seconds that the layers of a rank's part take, from those of the whole network.
#pragma once
#include <cstdint>

#include "layers/parts/network_part.h"
#include "tools/prediction/layer_times.h"
#include "tools/prediction/part_costs.h"

namespace duplex::tools {

/// Returns the seconds of a part's layers, from those of the whole network for a micro-batch of
/// `samples`: a layer that computes some channels of some samples takes as much less time.
LayerTimes part_times(const NetworkPart& part, const Model& whole, std::int64_t samples,
                      const LayerTimes& times);

/// Returns them as measured, with those of the layers at the part's edges.
LayerTimes part_times(const NetworkPart& part, const Model& whole, std::int64_t samples,
                      const PartCosts& costs);

/// Returns the bytes that a layer at a part's edge, which sends, receives or puts together, reads
/// and writes in host memory, for micro-batches of `samples`.
std::int64_t edge_bytes(const Model& part, const Model::Entry& entry, std::int64_t samples);

}  // namespace duplex::tools
