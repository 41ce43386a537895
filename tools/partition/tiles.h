// A network cut into tiles, which are what is placed on ranks: a tile is what a unit computes of a
// block of its channels for a shard of the batch, forward and backward.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "layers/placement/units.h"
#include "tools/partition/hypergraph.h"

namespace duplex::tools {

struct TileSpec {
  std::int64_t batch = 0;  ///< Samples of an iteration, of all ranks together.
  /// Micro-batches of `batch` samples each that an iteration has: maps cross in each of them.
  std::int64_t micro_batches = 1;
  int shards = 1;  ///< The batch is cut in so many, at most one for each sample.
  int blocks = 1;  ///< Each unit's channels are cut in so many, as far as they can be.
  /// Seconds of forward and backward for the whole batch, by node; empty: multiply-adds are what a
  /// tile weighs.
  std::vector<double> seconds;
};

struct Tile {
  std::size_t unit = 0;
  int block = 0, shard = 0;
};

class Tiles {
 public:
  /// Throws Error(Exit::usage) where a step is too large to be counted in whole numbers.
  Tiles(const Model& model, const TileSpec& spec);

  const Units& units() const { return units_; }
  std::size_t count() const { return tiles_.size(); }
  const Tile& operator[](std::size_t tile) const { return tiles_[tile]; }
  std::size_t number(std::size_t unit, int block, int shard) const {
    return first_[unit] + static_cast<std::size_t>(block * shards_ + shard);
  }
  int shards() const { return shards_; }
  int blocks(std::size_t unit) const { return static_cast<int>(blocks_[unit].size()); }
  const Channels& channels(std::size_t unit, int block) const {
    return blocks_[unit][static_cast<std::size_t>(block)];
  }
  std::int64_t samples(int shard) const;

  /// The cost of computing it: multiply-adds of a forward, or picoseconds of forward and backward.
  std::int64_t work(std::size_t tile) const;
  /// Bytes of its output, and of that output's gradient if a reader gives one back.
  std::int64_t map_bytes(std::size_t tile) const;
  std::int64_t gradient_bytes(std::size_t tile) const;
  /// Bytes of the trained parameters of a block, of which every shard needs all.
  std::int64_t weight_bytes(std::size_t unit, int block) const;
  /// The tiles that read its output.
  const std::vector<Hypergraph::Vertex>& readers(std::size_t tile) const { return readers_[tile]; }

  /// The tiles as vertices, weighed by their work. The output of a tile is a net with those who
  /// read it: a rank that has some of them is sent it once, and gives back one gradient. A block's
  /// parameters are a net of its shards: with a tile on each of n ranks, (n - 1) / n of the
  /// gradient leaves each of them for the ranks that own the rest, and as much of the new weights
  /// comes back. So the connectivity cost of a partition is the bytes that an iteration sends.
  Hypergraph hypergraph() const;

 private:
  void weigh_units();

  const Units units_;
  TileSpec spec_;
  int shards_ = 1;
  std::vector<std::vector<Channels>> blocks_;  ///< By unit.
  std::vector<std::size_t> first_;             ///< By unit: its first tile.
  std::vector<Tile> tiles_;
  std::vector<std::vector<Hypergraph::Vertex>> readers_;
  std::vector<std::int64_t> unit_work_;  ///< For the whole batch.
};

}  // namespace duplex::tools
