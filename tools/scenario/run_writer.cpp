#include "tools/scenario/run_writer.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "tools/run_directory/dist_report.h"
#include "tools/run_directory/row_file.h"
#include "tools/run_directory/run_files.h"
#include "tools/scenario/result.h"

namespace duplex::tools {

RunWriter::RunWriter(const std::string& logdir, RunConfig config, const Scenario& scenario,
                     const ParallelSpec& parallel, const simulation::Spec& spec, int records)
    : config_(std::move(config)),
      scenario_(scenario),
      parallel_(parallel),
      spec_(spec),
      directory_(logdir, config_.command, config_.network, {config_file}) {
  for (int rank = 0; rank < std::min(records, spec.topology.size); ++rank)
    ledgers_.push_back({directory_.file(ledger_file(rank)), directory_.file(traffic_file(rank))});
}

void RunWriter::write(const simulation::Outcome& outcome,
                      const simulation::Recorder& recorder) const {
  directory_.write(config_file, text_of(config_));
  write_metrics(outcome.steps.front());
  for (int rank = 0; rank < static_cast<int>(ledgers_.size()); ++rank) {
    const std::string summary = text_of(summary_of(rank, outcome, recorder));
    directory_.write(rank_file(rank), summary);
    if (spec_.topology.worker_number(rank) == 0) directory_.write(summary_file, summary);
  }
  if (spec_.sync == net::Sync::none)
    directory_.write(staleness_file(0), text_of(staleness_rows(outcome.staleness)));
}

void RunWriter::write_metrics(const std::vector<simulation::StepTimes>& steps) const {
  std::vector<StepMetrics> rows;
  for (std::size_t step = 0; step < steps.size(); ++step) {
    StepMetrics row;
    row.step = step;
    row.total = steps[step].end - steps[step].begin;
    row.gradient = steps[step].computing;
    row.await = steps[step].awaiting;
    rows.push_back(row);
  }
  directory_.write(metrics_file, text_of(rows));
}

RunSummary RunWriter::summary_of(int rank, const simulation::Outcome& outcome,
                                 const simulation::Recorder& recorder) const {
  RunSummary summary;
  const int worker = spec_.topology.worker_number(rank);
  if (spec_.topology.is_worker(rank))
    summary.training = result_of(outcome.steps[static_cast<std::size_t>(worker)]);
  std::size_t elements = 0;
  for (const std::size_t count : spec_.counts) elements += count;
  summary.command = config_.command;
  summary.rank = rank;
  summary.workers = static_cast<int>(spec_.part.size());
  if (!spec_.slots.empty())
    summary.slots = std::accumulate(spec_.slots.begin(), spec_.slots.end(), 0);
  summary.mode = RankMode{spec_.topology.size, parallel_.server, parallel_.sync, true};
  summary.traffic = recorder.ledger(rank).summary(elements * sizeof(float));
  summary.ledger = recorder.ledger(rank).kept();
  summary.trained = outcome.trained;
  if (outcome.lost.empty()) summary.speedup = speedup_of(spec_, outcome, scenario_.costs.grad);
  if (spec_.sync == net::Sync::none)
    summary.lost = outcome.lost;
  else if (spec_.topology.is_owner(rank))
    summary.stragglers = straggler_summaries(outcome.stragglers[static_cast<std::size_t>(rank)],
                                             spec_.topology.workers());
  summary.ended_by = outcome.failure;
  return summary;
}

}  // namespace duplex::tools
