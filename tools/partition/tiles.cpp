#include "tools/partition/tiles.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace duplex::tools {
namespace {

/// Sums of these, over all tiles and for as many ranks as there may be, fit into 63 bits.
constexpr double most_work = 1e18, most_bytes = 1e15;

}  // namespace

Tiles::Tiles(const Model& model, const TileSpec& spec)
    : units_(model),
      spec_(spec),
      shards_(static_cast<int>(std::clamp<std::int64_t>(spec.shards, 1, spec.batch))) {
  for (std::size_t u = 0; u < units_.count(); ++u) {
    const Unit& unit = units_[u];
    blocks_.push_back(channel_blocks(unit, spec.blocks));
    first_.push_back(tiles_.size());
    for (int block = 0; block < blocks(u); ++block)
      for (int shard = 0; shard < shards_; ++shard) tiles_.push_back({u, block, shard});
  }
  weigh_units();
  readers_.resize(tiles_.size());
  for (std::size_t u = 0; u < units_.count(); ++u) {
    for (int block = 0; block < blocks(u); ++block) {
      for (const MapPart& read : units_.reads(u, channels(u, block))) {
        const auto unit = static_cast<std::size_t>(read.unit);
        for (int from = 0; from < blocks(unit); ++from) {
          const Channels& other = channels(unit, from);
          if (other.end <= read.channels.first || read.channels.end <= other.first) continue;
          for (int shard = 0; shard < shards_; ++shard) {
            auto& readers = readers_[number(unit, from, shard)];
            const auto reader = static_cast<Hypergraph::Vertex>(number(u, block, shard));
            if (readers.empty() || readers.back() != reader) readers.push_back(reader);
          }
        }
      }
    }
  }
}

void Tiles::weigh_units() {
  const double samples = static_cast<double>(spec_.batch);
  double work_of_all = 0.0, bytes_of_all = 0.0;
  for (std::size_t u = 0; u < units_.count(); ++u) {
    const Unit& unit = units_[u];
    double work = static_cast<double>(unit.macs) * samples;
    if (!spec_.seconds.empty()) {
      work = 0.0;
      for (const Model::Node node : unit.layers)
        work += 1e12 * spec_.seconds[static_cast<std::size_t>(node)];
    }
    work_of_all += work;
    bytes_of_all += static_cast<double>(unit.channel_bytes) * static_cast<double>(unit.channels) *
                    samples * static_cast<double>(spec_.micro_batches);
    if (work_of_all > most_work || bytes_of_all > most_bytes)
      throw Error(work_of_all > most_work
                      ? "the layers take too long for a step's samples to be cut over ranks: more "
                        "than 10^18 multiply-adds, or a million seconds; give a smaller --batch"
                      : "the layers' outputs have more than 10^15 bytes for a step's samples, too "
                        "many to be cut over ranks; give a smaller --batch",
                  Exit::usage);
    unit_work_.push_back(std::llround(work));
  }
}

std::int64_t Tiles::samples(int shard) const {
  return spec_.batch * (shard + 1) / shards_ - spec_.batch * shard / shards_;
}

std::int64_t Tiles::work(std::size_t tile) const {
  const auto& [unit, block, shard] = tiles_[tile];
  const double part = static_cast<double>(channels(unit, block).count() * samples(shard)) /
                      static_cast<double>(units_[unit].channels * spec_.batch);
  return std::llround(part * static_cast<double>(unit_work_[unit]));
}

std::int64_t Tiles::map_bytes(std::size_t tile) const {
  const auto& [unit, block, shard] = tiles_[tile];
  return units_[unit].channel_bytes * channels(unit, block).count() * samples(shard) *
         spec_.micro_batches;
}

std::int64_t Tiles::gradient_bytes(std::size_t tile) const {
  return units_[tiles_[tile].unit].gradient ? map_bytes(tile) : 0;
}

std::int64_t Tiles::weight_bytes(std::size_t unit, int block) const {
  return 4 * units_[unit].parameters / units_[unit].channels * channels(unit, block).count();
}

Hypergraph Tiles::hypergraph() const {
  Hypergraph graph;
  for (std::size_t tile = 0; tile < count(); ++tile) graph.add_vertex(work(tile));
  for (std::size_t tile = 0; tile < count(); ++tile) {
    std::vector<Hypergraph::Vertex> pins = readers(tile);
    pins.push_back(static_cast<Hypergraph::Vertex>(tile));
    graph.add_net(std::move(pins), map_bytes(tile) + gradient_bytes(tile));
  }
  for (std::size_t u = 0; u < units_.count(); ++u) {
    for (int block = 0; block < blocks(u); ++block) {
      std::vector<Hypergraph::Vertex> pins;
      for (int shard = 0; shard < shards_; ++shard)
        pins.push_back(static_cast<Hypergraph::Vertex>(number(u, block, shard)));
      graph.add_net(std::move(pins), 2 * weight_bytes(u, block));
    }
  }
  graph.tidy();
  return graph;
}

}  // namespace duplex::tools
