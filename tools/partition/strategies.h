// The named ways to place a network's tiles on ranks.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tools/partition/hypergraph.h"
#include "tools/partition/tiles.h"

namespace duplex::tools {

/// The speeds at which ranks compute, beside each other, by rank.
using Speeds = std::vector<double>;

/// Every rank has shards of the batch, of all layers: data parallelism.
Parts place_by_samples(const Tiles& tiles, const Speeds& speeds);

/// Every rank has blocks of the channels, of all layers that can be cut so: filter splitting.
/// Layers that cannot are placed by samples.
Parts place_by_channels(const Tiles& tiles, const Speeds& speeds);

/// Convolutions by samples, linear layers by channels: "one weird trick" (Krizhevsky 2014).
Parts place_by_one_weird_trick(const Tiles& tiles, const Model& model, const Speeds& speeds);

/// Every rank has a run of layers, all of them about the same work for its speed, cut where least
/// crosses: the stages of a pipeline.
/// `idle`: of slow ranks some may be left without a layer, or none, if there are enough.
enum class Idle { some, none };
Parts place_by_layers(const Tiles& tiles, const Speeds& speeds, Idle idle = Idle::some);
/// Returns the first unit of each rank's run, and, at the end, the number of units.
std::vector<std::size_t> layer_runs(const Tiles& tiles, const Speeds& speeds, Idle idle);

/// Gives each of so many items in a row to a rank, in order, as its speed is.
std::vector<int> shared_out(int items, const Speeds& speeds);

}  // namespace duplex::tools
