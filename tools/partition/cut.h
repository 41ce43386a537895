// A cut of a network: its tiles on ranks, and what that comes to.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tools/partition/strategies.h"
#include "tools/partition/tiles.h"

namespace duplex::tools {

/// A rank's part in a unit, or in the whole network.
struct CutShare {
  std::int64_t work = 0;                             ///< Tiles::work of its tiles.
  std::int64_t maps_out = 0, maps_in = 0;            ///< Bytes of outputs, forward.
  std::int64_t gradients_out = 0, gradients_in = 0;  ///< Bytes of their gradients, backward.
  std::int64_t weights_out = 0,
               weights_in = 0;   ///< Bytes of parameters' gradients and new weights.
  std::int64_t parameters = 0;   ///< Bytes of the parameters that it holds.
  std::int64_t activations = 0;  ///< Bytes of its layers' outputs, and of those that it is sent.

  /// Bytes of maps and their gradients that it sends.
  std::int64_t maps_sent() const { return maps_out + gradients_out; }
  std::int64_t out() const { return maps_sent() + weights_out; }
  std::int64_t in() const { return maps_in + gradients_in + weights_in; }
  void add(const CutShare& other);
};

CutShare sum_of(const std::vector<CutShare>& shares);

struct Cut {
  std::string strategy;  ///< "data", "owt", "filter", "pipeline", "hybrid", "hypergraph".
  Parts parts;
  std::vector<std::vector<CutShare>> units;  ///< By unit and rank.
  std::vector<CutShare> ranks;               ///< Sums of all units.

  std::int64_t bytes() const;  ///< That all ranks together send in an iteration.
  std::int64_t most_out() const;
  /// The rank with the most work for its speed has so much more than the average; 0.05: 5%.
  double imbalance(const Speeds& speeds) const;
  /// If work is picoseconds: the seconds that an iteration takes at least, over links of so many
  /// bytes a second in each direction. Some rank computes, sends or receives for so long.
  double least_seconds(const Speeds& speeds, double rate) const;
};

/// Counts what crosses between ranks, transfer by transfer.
Cut cut_of(const Tiles& tiles, std::string strategy, Parts parts, int ranks);

/// The part of a unit's output that each rank computes.
std::vector<double> parts_of(const Tiles& tiles, std::size_t unit, const Cut& cut);

struct CutSpec {
  Speeds speeds;            ///< By rank.
  double imbalance = 0.05;  ///< That the hypergraph's parts may have.
  std::uint64_t seed = 1;
  int starts = 0;  ///< PartitionSpec::starts.
  int threads = 1;
};

/// Cuts by one of the named strategies: data, owt, filter, pipeline or hybrid (of most_grid_ranks
/// at most). Throws Error(usage) for any other name.
Cut named_cut(const std::string& strategy, const Tiles& tiles, const Model& model,
              const Speeds& speeds);

/// `graph` is the tiles' hypergraph. Returns all strategies: the named ones (hybrid for
/// most_grid_ranks at most), and the hypergraph's, which starts from them and from nothing and has
/// no more bytes than any of them that is within the imbalance.
std::vector<Cut> all_cuts(const Tiles& tiles, const Hypergraph& graph, const Model& model,
                          const CutSpec& spec);

}  // namespace duplex::tools
