// Coarsening: vertices that share many and small nets become one (Catalyurek and Aykanat 1999;
// "first choice", Karypis and Kumar 2000).
#pragma once
#include <vector>

#include "tools/partition/draws.h"
#include "tools/partition/hypergraph.h"

namespace duplex::tools {

struct Level {
  Hypergraph graph;
  std::vector<Hypergraph::Vertex> clusters;  ///< The vertex of `graph` of every finer one.
};

/// Returns smaller and smaller hypergraphs, the last of which has about `enough` vertices, or as
/// many as there are when hardly any can be joined. No vertex becomes heavier than `heaviest`, but
/// for those that are. With `parts`, only vertices of the same part are joined.
std::vector<Level> coarsen(const Hypergraph& graph, std::size_t enough, std::int64_t heaviest,
                           const Parts* parts, Draws& draws);

/// The parts of finer vertices, or of coarser ones where all of a cluster have the same.
Parts project(const Parts& coarse, const std::vector<Hypergraph::Vertex>& clusters);
Parts lift(const Parts& fine, const Level& level);

}  // namespace duplex::tools
