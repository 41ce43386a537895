// duplex simulate plays the schedule of dist in virtual time, for machines that nobody owns yet.
#include <algorithm>
#include <cstdio>

#include "core/clock.h"
#include "core/error.h"
#include "tools/commands.h"
#include "tools/flags/command_line.h"
#include "tools/flags/simulate_flags.h"
#include "tools/run_directory/dist_report.h"
#include "tools/run_directory/row_file.h"
#include "tools/run_directory/run_directory.h"
#include "tools/run_directory/run_files.h"
#include "tools/simulation/simulation.h"
#include "tools/text/quartiles.h"
#include "tools/text/rate.h"
#include "tools/text/table.h"
#include "tools/tracing/trace.h"
#include "tools/training/metrics.h"

namespace duplex::tools {
namespace {

const std::string command = "simulate";

using simulation::Outcome;
using simulation::Recorder;
using simulation::Spec;

/// Batches that a run does: those asked for, and some more if that makes every worker's number
/// equal.
double batches_of(const Spec& spec) {
  const auto steps = static_cast<double>(spec.steps);
  return spec.sync == net::Sync::split ? steps : steps * static_cast<double>(spec.part.size());
}

/// The speedup (4.23) by the time until the last gradient is applied, as (4.4) to (4.21) have it,
/// in a run that lost no rank.
double speedup_of(const Spec& spec, const Outcome& outcome, double grad) {
  return batches_of(spec) * grad / outcome.trained;
}

/// The result of one worker, by the rule of real runs.
TrainingResult result_of(const std::vector<simulation::StepTimes>& steps) {
  TrainingResult result;
  std::vector<double> gradient, total, await;
  Schedule schedule;
  schedule.steps = steps.size();
  const std::uint64_t warm_up = schedule.warm_up();
  for (std::size_t step = warm_up; step < steps.size(); ++step) {
    gradient.push_back(steps[step].computing);
    total.push_back(steps[step].end - steps[step].begin);
    await.push_back(steps[step].awaiting);
  }
  result.steps = steps.size();
  result.seconds = steps.empty() ? 0.0 : steps.back().end;
  result.push = result.data = quartiles_of(std::vector<double>(total.size(), 0.0));
  result.gradient = quartiles_of(std::move(gradient));
  result.total = quartiles_of(std::move(total));
  result.await = quartiles_of(std::move(await));
  return result;
}

/// Writes the files of a run directory.
class Writer {
 public:
  Writer(const SimulateFlags& flags, const Scenario& scenario, const Spec& spec)
      : flags_(flags),
        scenario_(scenario),
        spec_(spec),
        directory_(flags.logdir, command, flags.model.net, config_file) {
    for (int rank = 0; rank < std::min(flags.records, spec.topology.size); ++rank)
      ledgers_.push_back(directory_.file(ledger_file(rank)));
  }
  const std::vector<std::string>& ledgers() const { return ledgers_; }

  void write(const Outcome& outcome, Recorder& recorder) {
    recorder.close();
    write_config();
    write_metrics(outcome.steps.front());
    for (std::size_t rank = 0; rank < ledgers_.size(); ++rank)
      write_rank(static_cast<int>(rank), outcome, recorder);
    if (spec_.sync == net::Sync::none)
      directory_.write(staleness_file(0), text_of(staleness_rows(outcome.staleness)));
    if (flags_.trace) {
      const std::vector<RankTrace> trace = recorder.trace();
      write_trace(directory_.file(trace_file), scenario_.model, trace);
      std::fputs(waiting_report(trace).c_str(), stdout);
    }
    std::printf("run      %s\n", directory_.path().c_str());
  }

 private:
  void write_config() const {
    RunConfig config = flags_.model.config(scenario_.model);
    config.command = command;
    config.settings = flags_.parallel.spec.settings();
    config.batch = flags_.batch;
    config.seed = flags_.seed;
    config.device = "none: simulated";
    config.replayed = config.simulated = true;
    config.parallel = flags_.parallel.config(spec_.topology);
    SimulationConfig& given = config.simulation.emplace();
    given.batches = static_cast<std::uint64_t>(flags_.batches);
    given.grad = scenario_.costs.grad;
    given.comm = scenario_.costs.comm;
    given.rate = scenario_.rate;
    given.owner_rate = scenario_.owner_rate;
    given.latency = flags_.latency;
    given.slow = flags_.slow;
    given.links = flags_.links;
    given.lose = flags_.lose;
    directory_.write(config_file, text_of(config));
  }

  void write_metrics(const std::vector<simulation::StepTimes>& steps) const {
    RowFile<StepMetrics> metrics(directory_.file(metrics_file));
    for (std::size_t step = 0; step < steps.size(); ++step) {
      StepMetrics row;
      row.step = step;
      row.total = steps[step].end - steps[step].begin;
      row.gradient = steps[step].computing;
      row.await = steps[step].awaiting;
      metrics.write(row);
    }
  }

  void write_rank(int rank, const Outcome& outcome, const Recorder& recorder) const {
    const bool trains = spec_.topology.is_worker(rank);
    const int worker = spec_.topology.worker_number(rank);
    RunSummary summary;
    if (trains) summary.training = result_of(outcome.steps[static_cast<std::size_t>(worker)]);
    std::size_t elements = 0;
    for (const std::size_t count : spec_.counts) elements += count;
    summary.command = command;
    summary.rank = rank;
    summary.workers = static_cast<int>(spec_.part.size());
    const ParallelSpec& parallel = flags_.parallel.spec;
    summary.mode = RankMode{spec_.topology.size, parallel.server, parallel.sync, true};
    summary.traffic = recorder.ledger(rank).summary(elements * sizeof(float));
    summary.trained = outcome.trained;
    if (outcome.lost.empty()) summary.speedup = speedup_of(spec_, outcome, scenario_.costs.grad);
    if (spec_.sync == net::Sync::none) summary.lost = outcome.lost;
    summary.ended_by = outcome.failure;
    directory_.write(rank_file(rank), text_of(summary));
    if (trains && worker == 0) directory_.write(summary_file, text_of(summary));
  }

  const SimulateFlags& flags_;
  const Scenario& scenario_;
  const Spec& spec_;
  RunDirectory directory_;
  std::vector<std::string> ledgers_;
};

void say_what_is_done(const SimulateFlags& flags, const Spec& spec) {
  const double done = batches_of(spec);
  if (done > static_cast<double>(flags.batches))
    std::fprintf(stderr, "%lld batches are no multiple of %zu workers: they do %.0f, %llu each\n",
                 static_cast<long long>(flags.batches), spec.part.size(), done,
                 static_cast<unsigned long long>(spec.steps));
  const std::size_t parts = spec.part.size();
  if (spec.sync == net::Sync::split && flags.batch % static_cast<std::int64_t>(parts) != 0)
    std::fprintf(stderr,
                 "a batch of %lld is no multiple of %zu workers: the largest part is %.0f of it\n",
                 static_cast<long long>(flags.batch), parts,
                 spec.part.front() * static_cast<double>(flags.batch));
}

void print(const SimulateFlags& flags, const Scenario& scenario, const Spec& spec,
           const Outcome& outcome) {
  const int workers = static_cast<int>(spec.part.size());
  std::printf("%s, %d worker%s, %s\nlink     %s, t_comm %s; t_grad %s\n",
              scenario.model.title().c_str(), workers, workers == 1 ? "" : "s",
              flags.parallel.spec.settings().c_str(), rate_text(scenario.rate).c_str(),
              duration_text(scenario.costs.comm).c_str(),
              duration_text(scenario.costs.grad).c_str());
  if (outcome.failure)
    std::printf("ended    %s after %s, which ends the run; worker 0 had done %zu of %llu steps\n",
                outcome.failure->c_str(), duration_text(outcome.ended).c_str(),
                outcome.steps.front().size(), static_cast<unsigned long long>(spec.steps));
  for (const int rank : outcome.lost)
    if (!outcome.failure) std::printf("lost     rank %d; the others went on\n", rank);
  const TrainingResult result = result_of(outcome.steps.front());
  if (result.total.count > 0)
    std::printf("step     %s, of which awaiting weights %s\n", quartiles_text(result.total).c_str(),
                duration_text(result.await.median).c_str());
  if (spec.sync == net::Sync::none) std::fputs(staleness_report(outcome.staleness).c_str(), stdout);
  if (!outcome.lost.empty()) return;
  std::printf("speedup  %s: %.0f batches in %s\n",
              fixed(speedup_of(spec, outcome, scenario.costs.grad), 2).c_str(), batches_of(spec),
              duration_text(outcome.trained).c_str());
  if (flags.parallel.spec.average == 0)
    std::printf(
        "         %s by the equations, for the thesis's order\n",
        fixed(speedup(scenario.costs, spec.sync, spec.topology.mode, workers, batches_of(spec)), 2)
            .c_str());
}

}  // namespace

int simulate(int argc, const char* const* argv) {
  CLI::App app{
      "Plays a run of dist in virtual time: its schedule of layers, chunks, priorities and turns, "
      "over links that are shared fairly.",
      "duplex simulate"};
  SimulateFlags flags;
  flags.add_to(app);
  if (const auto done = parse(app, argc, argv)) return *done;
  flags.resolve();
  std::vector<std::string> notes;
  const Scenario scenario = scenario_of(flags, notes);
  const SimulationRequest request = flags.request();
  for (const std::string& note : notes) std::fprintf(stderr, "%s\n", note.c_str());

  if (flags.output == "csv") {
    say_what_is_done(flags, spec_of(request, scenario, flags.workers));
    for (int n = 1; n <= flags.workers; ++n) {
      const Spec spec = spec_of(request, scenario, n);
      std::printf("%s%.9g", n > 1 ? ";" : "",
                  speedup_of(spec, simulation::simulate(spec, nullptr), scenario.costs.grad));
      std::fflush(stdout);
    }
    std::printf("\n");
    return 0;
  }
  const Spec spec = spec_of(request, scenario, flags.workers);
  say_what_is_done(flags, spec);
  std::optional<Writer> writer;
  std::optional<Recorder> recorder;
  if (flags.writes()) {
    writer.emplace(flags, scenario, spec);
    recorder.emplace(writer->ledgers(), flags.trace ? flags.trace_steps : 0);
  }
  const std::int64_t from = clock_ns();
  const Outcome outcome = simulation::simulate(spec, recorder ? &*recorder : nullptr);
  print(flags, scenario, spec, outcome);
  std::printf("took     %s for %s frames, links shared %s times\n",
              duration_text(seconds(clock_ns() - from)).c_str(),
              grouped(static_cast<std::int64_t>(outcome.frames)).c_str(),
              grouped(static_cast<std::int64_t>(outcome.sharings)).c_str());
  if (writer) writer->write(outcome, *recorder);
  return 0;
}

}  // namespace duplex::tools
