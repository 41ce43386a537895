// Builds the network that a rank computes of one that is cut by samples and channels.
#pragma once
#include <cstddef>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "layers/parts/cut_network.h"
#include "layers/parts/gather.h"

namespace duplex {

class PartBuilder {
 public:
  /// `cut` must outlive it.
  PartBuilder(const CutNetwork& cut, int rank);

  NetworkPart build();

 private:
  using Node = Model::Node;
  /// A node of the part, which is a region of a unit's output (or of the images).
  struct Source {
    Node node = 0;
    Region region;
  };

  void add_layer(Node whole, std::size_t piece);
  std::vector<Node> inputs_of(Node whole, std::size_t piece);
  std::shared_ptr<const Layer> layer_for(const Model::Entry& entry, const Region& region) const;
  Node map_of(Node whole, const Region& region);
  Node assembled(Node whole, const Region& region, const std::vector<Source>& sources,
                 const std::vector<GatherLayer::Piece>& pieces);
  std::vector<Source> sources_of(std::size_t unit, const Region& region);
  Source received(std::size_t transfer);
  void find_images();
  void send(std::size_t piece);
  std::string text_of(const std::string& name, const Region& region, std::int64_t channels) const;
  PartOf part_of(const std::string& layer, const Region& region, std::int64_t channels) const;

  const CutNetwork& cut_;
  const Units& units_;
  const Model& whole_;
  const int rank_;
  NetworkPart part_;
  std::vector<std::size_t> own_;                       ///< The pieces of this rank.
  std::map<std::pair<std::size_t, Node>, Node> made_;  ///< By piece and whole node.
  std::map<std::size_t, Source> received_;             ///< By transfer.
  /// Maps that have been put together, by whole node and region.
  std::map<std::tuple<Node, std::int64_t, std::int64_t, std::int64_t, std::int64_t>, Node> maps_;
};

}  // namespace duplex
