#include "tools/partition/strategies.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace duplex::tools {
namespace {

/// Places units of which by_channels(unit) holds by channels, others by samples.
template <class ByChannels>
Parts place(const Tiles& tiles, const Speeds& speeds, const ByChannels& by_channels) {
  const std::vector<int> of_shard = shared_out(tiles.shards(), speeds);
  Parts parts(tiles.count());
  for (std::size_t tile = 0; tile < tiles.count(); ++tile) {
    const auto& [unit, block, shard] = tiles[tile];
    parts[tile] = tiles.blocks(unit) > 1 && by_channels(unit)
                      ? shared_out(tiles.blocks(unit), speeds)[static_cast<std::size_t>(block)]
                      : of_shard[static_cast<std::size_t>(shard)];
  }
  return parts;
}

/// Work of each unit, and the bytes that cross where the units are cut before it.
struct Chain {
  std::vector<double> work, bytes;

  explicit Chain(const Tiles& tiles)
      : work(tiles.units().count(), 0.0), bytes(tiles.units().count(), 0.0) {
    for (std::size_t tile = 0; tile < tiles.count(); ++tile) {
      const std::size_t unit = tiles[tile].unit;
      work[unit] += static_cast<double>(tiles.work(tile));
      std::size_t last = unit;
      for (const Hypergraph::Vertex reader : tiles.readers(tile))
        last = std::max(last, tiles[reader].unit);
      for (std::size_t cut = unit + 1; cut <= last; ++cut)
        bytes[cut] += static_cast<double>(tiles.map_bytes(tile) + tiles.gradient_bytes(tile));
    }
  }
};

/// Cuts the units into a run for every rank. best[r][u] is the least of `cost` for the first u
/// units on the first r ranks; cost(before, from, to, rank) adds a run to what is before it.
template <class Cost>
std::vector<std::size_t> cut(std::size_t units, std::size_t ranks, const Cost& cost) {
  constexpr double never = std::numeric_limits<double>::infinity();
  std::vector<std::vector<double>> best(ranks + 1, std::vector<double>(units + 1, never));
  std::vector<std::vector<std::size_t>> from(ranks + 1, std::vector<std::size_t>(units + 1, 0));
  best[0][0] = 0.0;
  for (std::size_t r = 0; r < ranks; ++r) {
    for (std::size_t end = 0; end <= units; ++end) {
      for (std::size_t start = 0; start <= end; ++start) {
        if (best[r][start] == never) continue;
        const double sum = cost(best[r][start], start, end, r);
        if (sum < best[r + 1][end]) {
          best[r + 1][end] = sum;
          from[r + 1][end] = start;
        }
      }
    }
  }
  std::vector<std::size_t> starts(ranks + 1, units);
  for (std::size_t r = ranks; r > 0; --r) starts[r - 1] = from[r][starts[r]];
  return starts;
}

}  // namespace

std::vector<int> shared_out(int items, const Speeds& speeds) {
  const double all = std::accumulate(speeds.begin(), speeds.end(), 0.0);
  std::vector<int> holders(static_cast<std::size_t>(items));
  std::size_t rank = 0;
  double before = 0.0;  // The sum of speeds of ranks before this one.
  for (int item = 0; item < items; ++item) {
    const double middle = (item + 0.5) / items * all;
    while (rank + 1 < speeds.size() && before + speeds[rank] <= middle) before += speeds[rank++];
    holders[static_cast<std::size_t>(item)] = static_cast<int>(rank);
  }
  return holders;
}

Parts place_by_samples(const Tiles& tiles, const Speeds& speeds) {
  return place(tiles, speeds, [](std::size_t) { return false; });
}

Parts place_by_channels(const Tiles& tiles, const Speeds& speeds) {
  return place(tiles, speeds, [](std::size_t) { return true; });
}

Parts place_by_one_weird_trick(const Tiles& tiles, const Model& model, const Speeds& speeds) {
  return place(tiles, speeds, [&](std::size_t unit) {
    const Model::Node first = tiles.units()[unit].layers.front();
    return model.entry(first).layer->type() == "linear";
  });
}

std::vector<std::size_t> layer_runs(const Tiles& tiles, const Speeds& speeds, Idle idle) {
  const Chain chain(tiles);
  const std::size_t units = chain.work.size();
  std::vector<double> before(units + 1, 0.0);
  std::partial_sum(chain.work.begin(), chain.work.end(), before.begin() + 1);
  const bool all_work = idle == Idle::none && units >= speeds.size();
  const auto load = [&](std::size_t start, std::size_t end, std::size_t rank) {
    if (all_work && start == end) return std::numeric_limits<double>::infinity();
    return (before[end] - before[start]) / speeds[rank];
  };
  // First the least that the busiest rank can have, then the fewest bytes with about that.
  std::vector<std::size_t> starts =
      cut(units, speeds.size(), [&](double sum, std::size_t start, std::size_t end, std::size_t r) {
        return std::max(sum, load(start, end, r));
      });
  double most = 0.0;
  for (std::size_t r = 0; r < speeds.size(); ++r)
    most = std::max(most, load(starts[r], starts[r + 1], r));
  starts =
      cut(units, speeds.size(), [&](double sum, std::size_t start, std::size_t end, std::size_t r) {
        if (load(start, end, r) > 1.02 * most) return std::numeric_limits<double>::infinity();
        return sum + (start > 0 && start < end ? chain.bytes[start] : 0.0);
      });
  return starts;
}

Parts place_by_layers(const Tiles& tiles, const Speeds& speeds, Idle idle) {
  const std::vector<std::size_t> starts = layer_runs(tiles, speeds, idle);
  Parts parts(tiles.count());
  for (std::size_t tile = 0; tile < tiles.count(); ++tile) {
    const auto behind = std::upper_bound(starts.begin(), starts.end(), tiles[tile].unit);
    parts[tile] = static_cast<int>(behind - starts.begin()) - 1;
  }
  return parts;
}

}  // namespace duplex::tools
