// The stages of a pipeline, as a user gives them.
#pragma once
#include <string>
#include <vector>

namespace duplex::tools {

/// A run of ranks that share a stage's samples.
struct StageRanks {
  int ranks = 1;
  std::string first;  ///< The first layer of the stage; "": it follows from the work of the layers.
  /// The stage before computes this part of a micro-batch's samples of that layer.
  double before = 0.0;
};

/// "": a stage for each rank. "3": so many stages, with as many ranks each. "6:2": the ranks of
/// each stage. "6:2@conv5_1": the same, and the second one begins with the layer conv5_1; then
/// every stage but the first has a layer. "6:2@conv5_1+0.25": a quarter of the samples of conv5_1
/// is computed by the stage before. Throws Error(usage) for any other text, and where the ranks are
/// not so many.
std::vector<StageRanks> parse_stages(const std::string& text, int ranks);

/// Throws Error(usage) where no number of ranks has such stages.
void check_stages(const std::string& text);

}  // namespace duplex::tools
