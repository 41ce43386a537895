// The running statistics that ranks report at the end, and what is saved with them.
#include <algorithm>

#include "tools/checkpoint/statistics_report.h"
#include "tools/dist/rank.h"
#include "tools/run_directory/run_files.h"

namespace duplex::tools {

/// Returns whether workers report their running statistics, which a central server needs if it has
/// to save the network.
bool Rank::reports_statistics() const {
  return asynchronous() && spec_.parallel.central() && !replays();
}

net::ParameterExchange::Report Rank::report(net::ParameterExchange& wire) const {
  net::ParameterExchange::Report trace = tracing_.report(wire);
  if (cut_ && !replays())
    return
        [this, trace] { return statistics_text(*part_networks_.front()) + (trace ? trace() : ""); };
  if (!reports_statistics()) return trace;
  return [this, trace] { return statistics_text(*network_) + (trace ? trace() : ""); };
}

std::vector<std::vector<float>> Rank::take_statistics(std::vector<std::string>& reports) const {
  std::vector<std::vector<float>> statistics(static_cast<std::size_t>(spec_.mesh.topology.size));
  if (!reports_statistics()) return statistics;
  const std::size_t count = statistics_count(setup_.model);
  for (const int rank : spec_.mesh.topology.workers()) {
    const auto number = static_cast<std::size_t>(rank);
    if (number < reports.size())
      statistics[number] = tools::take_statistics(reports[number], count);
  }
  return statistics;
}

/// Saves the weights on the central server of an asynchronous run that has lost its first worker,
/// with the statistics of the first one that is left.
void Rank::keep_without_the_first_worker(const net::ParameterExchange& wire,
                                         const std::vector<std::vector<float>>& statistics) {
  const std::vector<int> lost = wire.lost();
  const std::vector<int> workers = spec_.mesh.topology.workers();
  const auto is_lost = [&](int rank) {
    return std::find(lost.begin(), lost.end(), rank) != lost.end();
  };
  if (replays() || !spoilt_.empty() || !is_lost(workers.front())) return;
  const std::size_t count = statistics_count(setup_.model);
  const auto left = std::find_if(workers.begin(), workers.end(), [&](int rank) {
    return !is_lost(rank) && statistics[static_cast<std::size_t>(rank)].size() == count;
  });
  if (left == workers.end()) return;
  std::vector<const float*> weights;
  for (const Span& span : host_.spans()) weights.push_back(span.weights);
  const std::vector<StateArray> arrays =
      checkpoint_arrays(setup_.model, weights, statistics[static_cast<std::size_t>(*left)]);
  if (!save(arrays, "unknown")) return;
  spec_.mesh.warn("saved the weights, since rank " + std::to_string(workers.front()) +
                  " is lost, which would have: " + directory_->file(checkpoint_file));
}

}  // namespace duplex::tools
