// duplex simulate plays the schedule of dist in virtual time, for machines that nobody owns yet.
#include <cmath>
#include <cstdio>
#include <optional>

#include "core/clock.h"
#include "core/error.h"
#include "tools/commands.h"
#include "tools/flags/command_line.h"
#include "tools/flags/simulate_flags.h"
#include "tools/run_directory/dist_report.h"
#include "tools/run_directory/run_files.h"
#include "tools/scenario/result.h"
#include "tools/scenario/run_writer.h"
#include "tools/simulation/simulation.h"
#include "tools/text/quartiles.h"
#include "tools/text/rate.h"
#include "tools/text/table.h"
#include "tools/tracing/trace.h"

namespace duplex::tools {
namespace {

using simulation::Outcome;
using simulation::Recorder;
using simulation::Spec;

TraceNames names_of(const Spec& spec, const Scenario& scenario) {
  if (!spec.cut) return TraceNames::of(scenario.model);
  TraceNames names{spec.cut->parameters, {}};
  for (const net::MapRoute& route : spec.cut->routes) names.maps.push_back(route.name);
  return names;
}

void say_what_is_done(const SimulateFlags& flags, const Scenario& scenario, const Spec& spec) {
  const double done = batches_of(spec);
  const int parts = flags.parallel.all_slots(static_cast<int>(spec.part.size()));
  const char* who = spec.slots.empty() ? "workers" : "slots";
  if (done > static_cast<double>(flags.batches))
    std::fprintf(stderr, "%lld batches are no multiple of %d %s: they do %.0f, %llu each\n",
                 static_cast<long long>(flags.batches), parts, who, done,
                 static_cast<unsigned long long>(spec.steps));
  if (spec.sync == net::Sync::split && !spec.cut && scenario.batch % parts != 0)
    std::fprintf(stderr,
                 "a batch of %lld is no multiple of %d %s: the largest part is %.0f of it\n",
                 static_cast<long long>(scenario.batch), parts, who,
                 std::ceil(static_cast<double>(scenario.batch) / parts));
}

void print(const SimulateFlags& flags, const Scenario& scenario, const Spec& spec,
           const Outcome& outcome) {
  const int workers = static_cast<int>(spec.part.size());
  const std::string sealing =
      spec.seal_rate > 0.0 ? ", sealed at " + fixed(spec.seal_rate * 1e-9, 2) + " GB/s" : "";
  std::printf("%s, %d worker%s\nsettings %s\nlink     %s%s, t_comm %s; t_grad %s\n",
              scenario.model.title().c_str(), workers, workers == 1 ? "" : "s",
              (flags.parallel.settings() + flags.request().parallel.share_text()).c_str(),
              rate_text(scenario.rate).c_str(), sealing.c_str(),
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
    std::printf("step     %s, of which awaiting weights%s %s\n",
                quartiles_text(result.total).c_str(), spec.cut ? " and maps" : "",
                duration_text(result.await.median).c_str());
  if (spec.sync == net::Sync::none) std::fputs(staleness_report(outcome.staleness).c_str(), stdout);
  if (!outcome.lost.empty()) return;
  std::printf("speedup  %s%s: %.0f batches in %s\n",
              fixed(speedup_of(spec, outcome, scenario.costs.grad), 2).c_str(),
              spec.slots.empty() ? "" : " over one slot", batches_of(spec),
              duration_text(outcome.trained).c_str());
  if (flags.parallel.average == 0 && spec.slots.empty() && !spec.cut)
    std::printf("         %s by the equations, for the thesis's order\n",
                fixed(speedup(costs_on_wire(scenario, spec), spec.sync, spec.topology.mode, workers,
                              batches_of(spec)),
                      2)
                    .c_str());
}

}  // namespace

int simulate(int argc, const char* const* argv) {
  CommandLine app{
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
    say_what_is_done(flags, scenario, spec_of(request, scenario, flags.workers));
    for (int n = 1; n <= flags.workers; ++n) spec_of(request, scenario, n);  // It may throw.
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
  say_what_is_done(flags, scenario, spec);
  std::optional<RunWriter> writer;
  std::optional<Recorder> recorder;
  if (flags.writes()) {
    writer.emplace(flags.logdir, flags.config(scenario, spec.topology), scenario, flags.parallel,
                   spec, flags.records);
    recorder.emplace(writer->ledgers(), flags.ledger, flags.trace ? flags.trace_steps : 0,
                     [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); });
  }
  const std::int64_t from = clock_ns();
  const Outcome outcome = simulation::simulate(spec, recorder ? &*recorder : nullptr);
  print(flags, scenario, spec, outcome);
  std::printf("took     %s for %s frames, links shared %s times\n",
              duration_text(seconds(clock_ns() - from)).c_str(),
              grouped(static_cast<std::int64_t>(outcome.frames)).c_str(),
              grouped(static_cast<std::int64_t>(outcome.sharings)).c_str());
  if (!writer) return 0;
  recorder->close();
  writer->write(outcome, *recorder);
  if (flags.trace) {
    const std::vector<RankTrace> trace = recorder->trace();
    write_trace(writer->directory().file(trace_file), scenario.model, names_of(spec, scenario),
                trace);
    std::fputs(waiting_report(trace, spec.average > 0).c_str(), stdout);
  }
  std::printf("run      %s\n", writer->directory().path().c_str());
  return 0;
}

}  // namespace duplex::tools
