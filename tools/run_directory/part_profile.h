// Seconds of a rank's part of a network that is cut, as duplex probe measures them.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace duplex::tools {

struct PartProfileLayer {
  std::string name;
  std::int64_t channels = 0;             ///< That the part computes of its output.
  double forward = 0.0, backward = 0.0;  ///< Seconds of the samples: medians.
};

/// The layers of one kind at a part's edges, all together.
struct PartProfileEdges {
  std::string type;                      ///< "send", "receive" or "gather".
  std::int64_t layers = 0, bytes = 0;    ///< Bytes that they read or write (edge_bytes()).
  double forward = 0.0, backward = 0.0;  ///< Seconds: sums of medians.
};

/// The part that one of `ranks` ranks has where every layer is cut by channels.
struct PartProfile {
  std::int64_t ranks = 1, samples = 0;
  std::vector<PartProfileLayer> layers;  ///< Those that have all of the samples.
  std::vector<PartProfileEdges> edges;
  /// Seconds a byte to add a micro-batch's gradient to those before it.
  double adding = 0.0;
};

}  // namespace duplex::tools
