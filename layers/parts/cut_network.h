// A network that is cut over ranks: what each of them computes, and what crosses between them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "layers/model.h"
#include "layers/parts/network_part.h"
#include "layers/placement/placement.h"

namespace duplex {

class Stages;

class CutNetwork {
 public:
  /// Throws Error(usage) where the placement does not fit the network (require_complete).
  CutNetwork(const Model& whole, Placement placement);
  ~CutNetwork();

  const Model& whole() const { return units_.model(); }
  const Units& units() const { return units_; }
  const Placement& placement() const { return placement_; }
  /// Units lie whole on one rank each, and no unit on a lower rank than those before: a pipeline.
  bool staged() const { return stages_ != nullptr; }
  /// Returns the regions that the ranks compute, unit by unit and rank by rank.
  const std::vector<PlacedRegion>& pieces() const { return pieces_; }
  /// Their numbers are the same on every rank.
  const std::vector<MapTransfer>& transfers() const { return transfers_; }

  /// Returns what a rank computes.
  NetworkPart part(int rank) const;

 private:
  struct Need {
    bool there = false, gradient = false;
  };

  std::vector<std::vector<Need>> needs() const;
  void add_transfers(std::size_t unit, const std::vector<std::vector<Need>>& needs);

  const Placement placement_;
  const Units units_;
  std::vector<PlacedRegion> pieces_;
  std::vector<std::vector<std::size_t>> tiles_of_;  ///< By unit: the numbers of its tiles.
  std::unique_ptr<const Stages> stages_;            ///< Of a pipeline.
  std::vector<MapTransfer> transfers_;
};

}  // namespace duplex
