// A network that is cut into stages, the parts of a pipeline: every layer lies whole on one of
// them, and maps go to later stages only.
//
// The sums of gradients have the bits of one machine, which sums what reads a map in descending
// order. So a map goes from stage to stage of those that read it, each of which adds its own to
// what comes back from behind; and a concatenation goes as one map where a stage that reads it has
// put it together.
#pragma once
#include <vector>

#include "layers/parts/network_part.h"
#include "layers/placement/units.h"

namespace duplex {

class Stages {
 public:
  /// `stage_of`: by unit, ascending. `samples`: of a micro-batch. `units` must outlive it.
  Stages(const Units& units, const std::vector<int>& stage_of, int stages, std::int64_t samples);

  const std::vector<MapTransfer>& transfers() const { return transfers_; }
  NetworkPart part(int stage) const;

 private:
  using Node = Model::Node;
  /// A map on a stage.
  struct Here {
    bool made = false;  ///< A layer computes it there.
    int from = -1;      ///< The stage that sends it; -1: none.
    bool there() const { return made || from >= 0; }
  };

  Here& here(int stage, Node node) {
    return here_[static_cast<std::size_t>(stage)][static_cast<std::size_t>(node)];
  }
  const Here& here(int stage, Node node) const {
    return here_[static_cast<std::size_t>(stage)][static_cast<std::size_t>(node)];
  }
  void need(Node node, int stage);
  void add_transfers();
  Node last_reader(Node node, int stage) const;

  const Units& units_;
  const Model& whole_;
  std::int64_t samples_;
  int stages_;
  std::vector<std::vector<Here>> here_;  ///< By stage and node.
  std::vector<MapTransfer> transfers_;   ///< Node by node, in ascending order of stages.
};

}  // namespace duplex
