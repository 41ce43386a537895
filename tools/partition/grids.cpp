#include "tools/partition/grids.h"

#include <algorithm>
#include <cstdint>

namespace duplex::tools {
namespace {

using Ranks = std::uint64_t;  ///< A bit for each of them.

int count_of(Ranks ranks) {
  int count = 0;
  for (; ranks != 0; ranks &= ranks - 1) ++count;
  return count;
}

/// A way to cut units: the ranks of each block, by shard.
class Grid {
 public:
  Grid(const Tiles& tiles, const Speeds& speeds, int parts) {
    const std::size_t size = speeds.size() / static_cast<std::size_t>(parts);
    Speeds groups;
    for (std::size_t first = 0; first < speeds.size(); first += size)
      groups.push_back(sum(speeds, first, size));
    const std::vector<int> of_shard = shared_out(tiles.shards(), groups);
    for (std::size_t unit = 0; unit < tiles.units().count(); ++unit) {
      const auto blocks = static_cast<std::size_t>(tiles.blocks(unit));
      if (by_blocks_.size() <= blocks) by_blocks_.resize(blocks + 1);
      if (!by_blocks_[blocks].empty()) continue;
      for (int shard = 0; shard < tiles.shards(); ++shard) {
        const int group = of_shard[static_cast<std::size_t>(shard)];
        const std::size_t first = static_cast<std::size_t>(group) * size;
        std::vector<int> ranks =
            blocks > 1
                ? shared_out(static_cast<int>(blocks),
                             Speeds(speeds.begin() + static_cast<std::ptrdiff_t>(first),
                                    speeds.begin() + static_cast<std::ptrdiff_t>(first + size)))
                : whole(tiles, speeds, first, size, shard, of_shard);
        for (int& rank : ranks) rank += static_cast<int>(first);
        by_blocks_[blocks].push_back(std::move(ranks));
      }
    }
  }

  /// The rank of a block of a unit that has so many of them.
  int rank(int blocks, int block, int shard) const {
    return by_blocks_[static_cast<std::size_t>(blocks)][static_cast<std::size_t>(shard)]
                     [static_cast<std::size_t>(block)];
  }

 private:
  static double sum(const Speeds& speeds, std::size_t first, std::size_t size) {
    double sum = 0.0;
    for (std::size_t i = first; i < first + size; ++i) sum += speeds[i];
    return sum;
  }
  /// If channels cannot be cut, a group's ranks have shards of its part of the batch.
  static std::vector<int> whole(const Tiles& tiles, const Speeds& speeds, std::size_t first,
                                std::size_t size, int shard, const std::vector<int>& of_shard) {
    const int group = of_shard[static_cast<std::size_t>(shard)];
    int begin = shard, count = 0;
    while (begin > 0 && of_shard[static_cast<std::size_t>(begin - 1)] == group) --begin;
    for (int i = begin; i < tiles.shards() && of_shard[static_cast<std::size_t>(i)] == group; ++i)
      ++count;
    const Speeds own(speeds.begin() + static_cast<std::ptrdiff_t>(first),
                     speeds.begin() + static_cast<std::ptrdiff_t>(first + size));
    return {shared_out(count, own)[static_cast<std::size_t>(shard - begin)]};
  }

  std::vector<std::vector<std::vector<int>>> by_blocks_;  ///< By number of blocks, and shard.
};

/// Costs of units by the grids of all of them, the same as a hypergraph's nets have.
class GridCosts {
 public:
  GridCosts(const Tiles& tiles, const Speeds& speeds) : tiles_(tiles) {
    const int ranks = static_cast<int>(speeds.size());
    for (int parts = 1; parts <= ranks; ++parts)
      if (ranks % parts == 0) {
        parts_.push_back(parts);
        grids_.emplace_back(tiles, speeds, parts);
      }
    readers_.resize(tiles.units().count());
    sources_.resize(tiles.units().count());
    for (std::size_t unit = 0; unit < readers_.size(); ++unit) {
      for (int block = 0; block < tiles.blocks(unit); ++block) {
        std::vector<Reader>& readers = readers_[unit].emplace_back();
        for (const Hypergraph::Vertex tile : tiles.readers(tiles.number(unit, block, 0))) {
          const Tile& reader = tiles[tile];
          readers.push_back({reader.unit, reader.block});
          auto& sources = sources_[reader.unit];
          if (std::find(sources.begin(), sources.end(), unit) == sources.end())
            sources.push_back(unit);
        }
      }
    }
  }

  const std::vector<int>& choices() const { return parts_; }
  std::size_t choice_of(int parts) const {
    return static_cast<std::size_t>(std::find(parts_.begin(), parts_.end(), parts) -
                                    parts_.begin());
  }

  /// The bytes that a unit's output, its gradient and its parameters take. `chosen`: of all units.
  std::int64_t cost(std::size_t unit, const std::vector<std::size_t>& chosen) const {
    std::int64_t sum = 0;
    const int blocks = tiles_.blocks(unit);
    const Grid& own = grids_[chosen[unit]];
    for (int block = 0; block < blocks; ++block) {
      Ranks holders = 0;
      for (int shard = 0; shard < tiles_.shards(); ++shard) {
        const Ranks here = Ranks{1} << own.rank(blocks, block, shard);
        holders |= here;
        Ranks ranks = here;
        for (const Reader& reader : readers_[unit][static_cast<std::size_t>(block)])
          ranks |= Ranks{1} << grids_[chosen[reader.unit]].rank(tiles_.blocks(reader.unit),
                                                                reader.block, shard);
        const std::size_t tile = tiles_.number(unit, block, shard);
        sum += (tiles_.map_bytes(tile) + tiles_.gradient_bytes(tile)) * (count_of(ranks) - 1);
      }
      sum += 2 * tiles_.weight_bytes(unit, block) * (count_of(holders) - 1);
    }
    return sum;
  }
  /// The cost of units from `first` to the one before `end` and of those that they read.
  std::int64_t cost(std::size_t first, std::size_t end,
                    const std::vector<std::size_t>& chosen) const {
    std::vector<bool> seen(readers_.size(), false);
    std::int64_t sum = 0;
    const auto add = [&](std::size_t unit) {
      if (!seen[unit]) sum += cost(unit, chosen);
      seen[unit] = true;
    };
    for (std::size_t unit = first; unit < end; ++unit) {
      add(unit);
      for (const std::size_t source : sources_[unit]) add(source);
    }
    return sum;
  }

 private:
  struct Reader {
    std::size_t unit = 0;
    int block = 0;
  };

  const Tiles& tiles_;
  std::vector<int> parts_;
  std::vector<Grid> grids_;
  std::vector<std::vector<std::vector<Reader>>> readers_;  ///< By unit and block.
  std::vector<std::vector<std::size_t>> sources_;          ///< By unit: those that it reads.
};

}  // namespace

Grids best_grids(const Tiles& tiles, const Speeds& speeds, const Grids& start) {
  const GridCosts costs(tiles, speeds);
  std::vector<std::size_t> chosen;
  for (const int parts : start) chosen.push_back(costs.choice_of(parts));
  const std::size_t units = chosen.size();
  for (bool better = true; better;) {
    better = false;
    for (std::size_t length = 1; length <= units; length *= 2) {
      for (std::size_t first = 0; first < units; first += std::max<std::size_t>(length / 2, 1)) {
        const std::size_t end = std::min(first + length, units);
        std::int64_t least = costs.cost(first, end, chosen);
        for (std::size_t choice = 0; choice < costs.choices().size(); ++choice) {
          std::vector<std::size_t> other = chosen;
          std::fill(other.begin() + static_cast<std::ptrdiff_t>(first),
                    other.begin() + static_cast<std::ptrdiff_t>(end), choice);
          const std::int64_t cost = costs.cost(first, end, other);
          if (cost >= least) continue;
          least = cost;
          chosen = std::move(other);
          better = true;
        }
      }
    }
  }
  Grids grids;
  for (const std::size_t choice : chosen) grids.push_back(costs.choices()[choice]);
  return grids;
}

Parts place_by_grids(const Tiles& tiles, const Speeds& speeds, const Grids& grids) {
  std::vector<std::pair<int, Grid>> made;
  Parts parts(tiles.count());
  for (std::size_t tile = 0; tile < tiles.count(); ++tile) {
    const auto& [unit, block, shard] = tiles[tile];
    auto grid = std::find_if(made.begin(), made.end(), [&, unit = unit](const auto& each) {
      return each.first == grids[unit];
    });
    if (grid == made.end()) {
      made.emplace_back(grids[unit], Grid(tiles, speeds, grids[unit]));
      grid = made.end() - 1;
    }
    parts[tile] = grid->second.rank(tiles.blocks(unit), block, shard);
  }
  return parts;
}

}  // namespace duplex::tools
