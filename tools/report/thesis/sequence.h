// Sequence diagrams of one iteration (thesis, figures 4.1 to 4.6).
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace duplex::tools::reports {

/// From the first of some frames to the last, in seconds since the iteration's first weights left.
struct TransferTime {
  double from = 0.0, to = 0.0;
};

/// The transfers of one worker: of the weights that it receives, and of its gradients to their
/// owners. A server that does not train has none.
struct RankTransfers {
  std::optional<TransferTime> weights, gradients;
};

/// An iteration of a run with overlap off.
struct Iteration {
  int step = 0;
  double seconds = 0.0;  ///< From the first weights that leave to the last gradient that is there.
  std::vector<RankTransfers> ranks;
};

/// An SVG. `server`: rank of a dedicated server, or -1.
std::string sequence_diagram(const Iteration& iteration, int server, const std::string& title);

}  // namespace duplex::tools::reports
