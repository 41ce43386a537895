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

/// Makes the layers of a replay for so many micro-batches at a time, which share one processor.
/// `observer` is told of every layer that takes time.
std::vector<std::unique_ptr<PartLayers>> replayed_layers(const NetworkPart& part, LayerTimes times,
                                                         std::uint64_t count,
                                                         LayerObserver observer);

}  // namespace duplex::tools
