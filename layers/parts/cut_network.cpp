#include "layers/parts/cut_network.h"

#include <algorithm>
#include <utility>

#include "layers/parts/part_builder.h"
#include "layers/parts/stages.h"

namespace duplex {
namespace {

std::size_t at(int rank) {
  return static_cast<std::size_t>(rank);
}

}  // namespace

CutNetwork::CutNetwork(const Model& whole, Placement placement)
    : placement_(std::move(placement)), units_(whole) {
  require_complete(placement_, units_);
  pieces_ = pieces_of(placement_, units_);
  if (pieces_.size() == units_.count() &&
      std::is_sorted(
          pieces_.begin(), pieces_.end(),
          [](const PlacedRegion& a, const PlacedRegion& b) { return a.rank < b.rank; })) {
    std::vector<int> stage_of;
    for (const PlacedRegion& piece : pieces_) stage_of.push_back(piece.rank);
    stages_ = std::make_unique<Stages>(units_, stage_of, placement_.ranks, placement_.samples);
    transfers_ = stages_->transfers();
    return;
  }
  tiles_of_.resize(units_.count());
  for (std::size_t tile = 0; tile < placement_.tiles.size(); ++tile)
    tiles_of_[placement_.tiles[tile].unit].push_back(tile);
  const std::vector<std::vector<Need>> needed = needs();
  for (std::size_t unit = 0; unit < units_.count(); ++unit) add_transfers(unit, needed);
}

CutNetwork::~CutNetwork() = default;

/// Returns by tile and rank whether what is computed there reads the tile's output, and gives a
/// gradient back.
std::vector<std::vector<CutNetwork::Need>> CutNetwork::needs() const {
  std::vector<std::vector<Need>> needs(placement_.tiles.size(),
                                       std::vector<Need>(at(placement_.ranks)));
  const std::vector<bool> reaches = reaches_loss(units_.model());
  for (const PlacedRegion& piece : pieces_) {
    const bool gradient = reaches[static_cast<std::size_t>(units_[piece.unit].layers.back())];
    for (const MapPart& part : units_.reads(piece.unit, piece.region.channels)) {
      const auto unit = static_cast<std::size_t>(part.unit);
      const Region read{piece.region.first_sample, piece.region.samples, part.channels};
      for (const std::size_t tile : tiles_of_[unit]) {
        const PlacedRegion& other = placement_.tiles[tile];
        if (other.rank == piece.rank || intersection(other.region, read).empty()) continue;
        Need& need = needs[tile][at(piece.rank)];
        need.there = true;
        need.gradient = need.gradient || (gradient && units_[unit].gradient);
      }
    }
  }
  return needs;
}

void CutNetwork::add_transfers(std::size_t unit, const std::vector<std::vector<Need>>& needs) {
  const std::int64_t map = units_[unit].channel_bytes / static_cast<std::int64_t>(sizeof(float));
  for (const PlacedRegion& piece : pieces_) {
    if (piece.unit != unit) continue;
    for (int to = 0; to < placement_.ranks; ++to) {
      std::vector<Region> wanted;
      bool gradient = false;
      for (const std::size_t tile : tiles_of_[unit]) {
        const PlacedRegion& own = placement_.tiles[tile];
        if (own.rank != piece.rank || !needs[tile][at(to)].there ||
            intersection(own.region, piece.region) != own.region)
          continue;
        wanted.push_back(own.region);
        gradient = gradient || needs[tile][at(to)].gradient;
      }
      for (const Region& region : joined(wanted, [](const Channels&) { return true; }))
        transfers_.push_back(
            {units_[unit].layers.back(), region, piece.rank, to, region.elements(map), gradient});
    }
  }
}

NetworkPart CutNetwork::part(int rank) const {
  return stages_ ? stages_->part(rank) : PartBuilder(*this, rank).build();
}

}  // namespace duplex
