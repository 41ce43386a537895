// A replay of a rank's part of a network that is cut: layers wait as long as a profile says, and
// maps of any content cross.
#pragma once
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "layers/parts/network_part.h"
#include "layers/parts/part_layers.h"
#include "tools/prediction/layer_times.h"

namespace duplex::tools {

/// The seconds of a part's layers, from those of the whole network for a micro-batch: a layer that
/// computes some channels of some samples takes as much less time.
LayerTimes part_times(const NetworkPart& part, const Model& whole, std::int64_t samples,
                      const LayerTimes& times);

/// Makes the layers of a replay for so many micro-batches at a time, which share one processor.
/// `observer` is told of every layer that takes time.
std::vector<std::unique_ptr<PartLayers>> replayed_layers(const NetworkPart& part, LayerTimes times,
                                                         std::uint64_t count,
                                                         LayerObserver observer);

}  // namespace duplex::tools
