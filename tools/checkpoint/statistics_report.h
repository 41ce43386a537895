// Carries running statistics from the workers to a central server, which has none of its own. They
// are the beginning of each worker's report at the end of the run.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "core/files/state_file.h"
#include "layers/model.h"
#include "layers/network.h"

namespace duplex::tools {

/// Returns how many elements all running statistics of a model have.
std::size_t statistics_count(const Model& model);

/// Returns the statistics of a network, in the order of the layers, as they lie in memory.
std::string statistics_text(Network& network);

/// Takes the `count` statistics away that `report` begins with. Returns none where it is too short.
std::vector<float> take_statistics(std::string& report, std::size_t count);

/// Returns what a checkpoint holds: weights of all trained parameters, by number, and statistics.
/// Both must outlive the result.
std::vector<StateArray> checkpoint_arrays(const Model& model,
                                          const std::vector<const float*>& weights,
                                          const std::vector<float>& statistics);

}  // namespace duplex::tools
