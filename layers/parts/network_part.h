// Defines the part of a cut network that one rank computes, and the maps that cross between ranks.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "layers/model.h"
#include "layers/placement/region.h"

namespace duplex {

/// A region of a layer's output that one rank sends to another in every micro-batch. Its gradient,
/// summed over what reads it there, goes back.
struct MapTransfer {
  Model::Node node = 0;  ///< Of the whole network.
  Region region;
  int from = 0, to = 0;
  std::size_t elements = 0;
  bool gradient = false;  ///< A gradient goes back.
};

/// A rank's part is a network of its own. Parameters and their first values, dropout's draws and
/// the loss of each sample are those of the whole network. A loss of some samples counts as they
/// are a share of the micro-batch, so that all ranks' losses add up to the whole one's, and all
/// gradients of a parameter to its gradient in the whole network.
struct NetworkPart {
  Model model;
  /// The samples of the micro-batch whose images it reads: the batch of its Network. Where it reads
  /// none, `reads` is false, and they are one.
  std::int64_t first_image = 0, images = 1;
  bool reads = false;
};

/// Returns for each node whether a loss that counts depends on it.
std::vector<bool> reaches_loss(const Model& model);

}  // namespace duplex
