// duplex compare RUN...: what computing and communicating cost in each run, and whether training in
// parallel paid: speedup predicted by simulation and by the equations from the first run's t_grad,
// and speedup measured.
#include <cstdio>
#include <optional>

#include "core/error.h"
#include "net/wire/frame.h"
#include "tools/commands.h"
#include "tools/flags/command_line.h"
#include "tools/prediction/payoff.h"
#include "tools/report/prediction.h"
#include "tools/run_directory/run_files.h"
#include "tools/run_directory/time_to_accuracy.h"
#include "tools/text/quartiles.h"
#include "tools/text/table.h"
#include "tools/text/wrap.h"

namespace duplex::tools {
namespace {

/// The figures in one row of the table.
struct Row {
  std::string directory, name;
  std::string network;
  std::int64_t batch = 0;
  int workers = 1, slots = 1;
  std::optional<RankMode> mode;          ///< None: of one machine.
  std::optional<reports::RunData> data;  ///< With a mode.
  double t_grad = 0.0, t_comm = 0.0;
  double sent = 0.0;  ///< Bytes a worker sends in a step.
  double step = 0.0;  ///< Seconds.
  /// Asynchronous workers have a pace each, and this is the sum; none: it is not known.
  std::optional<double> batches_a_second;
  bool lost = false;  ///< The run has gone on without a worker.
  bool replayed = false, simulated = false;
  std::optional<AccuracySummary> accuracy;  ///< None: not tested.
  std::optional<AccuracyTarget> until;      ///< At which it was to end.
  std::optional<int> rank;                  ///< The first worker's; none: of one machine.
  std::uint64_t average = 0;                ///< Batches between averagings; 0: gradients are sent.

  /// In a step every slot of a worker does a batch, or its part of one.
  double batches_a_step() const { return mode && mode->sync == net::Sync::split ? 1 : slots; }
  double per_batch() const {
    return batches_a_second ? 1.0 / *batches_a_second : step / batches_a_step();
  }
  /// (4.23): t_grad of one machine over seconds a batch.
  double speedup_over(const Row& alone) const { return alone.t_grad / per_batch(); }
};

Payoff payoff_of(const Row& run, const Row& alone) {
  const double part = run.batches_a_step() / run.slots;
  return {run.name, alone.name, run.speedup_over(alone),
          run.step, run.t_grad, run.t_grad / (part * alone.t_grad)};
}

Row row_of(const Run& run) {
  if (!run.summary)
    throw Error(run.directory + " has no " + summary_file + ": its run has not ended");
  const RunSummary& summary = *run.summary;
  Row row;
  row.directory = run.directory;
  row.name = run.name;
  row.network = run.config.title;
  row.batch = run.config.batch;
  row.replayed = run.config.replayed;
  row.simulated = run.config.simulated;
  row.workers = summary.workers.value_or(1);
  row.slots = summary.slots.value_or(row.workers);
  if (summary.training) {
    row.t_grad = summary.training->gradient.median;
    row.step = summary.training->total.median;
  }
  row.accuracy = summary.accuracy;
  if (run.config.until) row.until = parse_accuracy_target(*run.config.until);
  row.rank = summary.rank;
  if (run.config.parallel) row.average = run.config.parallel->average;
  if (summary.traffic) {
    row.mode = summary.mode;
    row.t_comm = summary.traffic->t_comm;
    // With --average, what it says is of an averaging.
    row.sent =
        summary.traffic->step_sent / static_cast<double>(std::max<std::uint64_t>(row.average, 1));
  }
  if (row.mode) row.data = reports::read_run_data(run.directory);
  if (row.mode && row.mode->sync == net::Sync::none) {
    row.lost = !row.data->lost().empty();
    row.batches_a_second = row.data->throughput();
  }
  if (row.workers < 1 || row.slots < row.workers || !(row.step > 0.0) || !(row.t_grad > 0.0))
    throw Error(run.directory + ": the run has no step that was timed");
  return row;
}

/// A table of what each run took to an accuracy, and how many times as fast as the first it was.
std::string accuracy_table(const std::vector<Row>& rows, const AccuracyTarget& target) {
  Table table({{"run", Table::Align::left},
               {"steps", Table::Align::right},
               {"batches", Table::Align::right},
               {"s", Table::Align::right},
               {"MB", Table::Align::right},
               {"S to it", Table::Align::right}});
  std::optional<double> alone;
  for (const Row& run : rows) {
    const bool asynchronous = run.mode && run.mode->sync == net::Sync::none;
    const auto time =
        time_to_accuracy(run.directory, target, run.rank, {asynchronous, run.average});
    if (&run == &rows.front() && time) alone = time->seconds;
    if (!time) {
      table.row({run.name, "not reached", "", "", "", ""});
      continue;
    }
    table.row(
        {run.name, grouped(static_cast<std::int64_t>(time->steps)),
         fixed(static_cast<double>(time->steps) * run.batches_a_step(), 0),
         time->seconds ? fixed(*time->seconds, 2) : "",
         time->bytes ? fixed(1e-6 * static_cast<double>(*time->bytes), 1) : "",
         alone && time->seconds.value_or(0.0) > 0.0 ? fixed(*alone / *time->seconds, 2) : ""});
  }
  return table.str();
}

std::string bytes_cell(double bytes) {
  return bytes > 0.0 ? fixed(bytes * 1e-6, 2) : "";
}

}  // namespace

int compare(int argc, const char* const* argv) {
  CommandLine app{
      "Puts runs side by side. The first that has ended, of one machine, is what speedup is "
      "measured "
      "against.",
      "duplex compare"};
  std::vector<std::string> directories;
  app.add_option("RUN", directories,
                 "run directories; one of transport gives t_comm, and what moving bytes takes of "
                 "the processors")
      .required();
  std::string until;
  app.add_option("--until", until,
                 "seconds, batches and bytes to an accuracy, such as top1:0.88, by the tests of "
                 "--test-every (default: the --until of the runs, where they have one)");
  if (const auto done = parse(app, argc, argv)) return *done;

  std::optional<AccuracyTarget> target;
  if (!until.empty()) target = parse_accuracy_target(until);
  std::vector<Row> rows;
  std::vector<reports::LinkData> links;
  for (const std::string& directory : directories) {
    try {
      if (reports::is_link(directory))
        links.push_back(reports::read_link(directory));
      else
        rows.push_back(row_of(read_run(directory)));
    } catch (const Error& error) {
      if (directories.size() == 1) throw;
      std::fprintf(stderr, "left out: %s\n", net::printable(error.what()).c_str());
    }
  }
  if (rows.empty()) throw Error("compare: none of these is a run that has ended");
  const Row& alone = rows.front();
  if (alone.workers != 1 || alone.slots != 1) {
    throw Error("compare: the first run, " + alone.name + ", is not of one machine with one slot",
                Exit::usage);
  }
  const std::vector<reports::RunData> machines{reports::read_run_data(alone.directory)};
  Table table({{"run", Table::Align::left},
               {"N", Table::Align::right},
               {"t_grad", Table::Align::right},
               {"t_comm", Table::Align::right},
               {"MB out", Table::Align::right},
               {"s/batch", Table::Align::right},
               {"S sim.", Table::Align::right},
               {"S eq.", Table::Align::right},
               {"S meas.", Table::Align::right},
               {"top-1", Table::Align::right}});
  for (const Row& run : rows) {
    if (run.network != alone.network || run.batch != alone.batch) {
      throw Error("compare: " + run.name + " (" + run.network + ", batch " +
                      std::to_string(run.batch) + ") and " + alone.name + " (" + alone.network +
                      ", batch " + std::to_string(alone.batch) + ") do not train the same",
                  Exit::usage);
    }
    std::optional<reports::Prediction> prediction;
    if (run.data) prediction = reports::prediction_of(*run.data, machines, links);
    const auto predicted = [&](std::optional<double> reports::Prediction::*speedup) {
      if (!run.mode) return std::string("1");
      const std::optional<double> value = prediction ? (*prediction).*speedup : std::nullopt;
      return value ? fixed(*value, 2) : std::string();
    };
    table.row({run.name + (run.simulated  ? " (simulated)"
                           : run.replayed ? " (replayed)"
                                          : ""),
               std::to_string(run.slots), duration_text(run.t_grad),
               run.mode ? duration_text(run.t_comm) : "", bytes_cell(run.sent),
               run.lost ? "" : fixed(run.per_batch(), 5),
               predicted(&reports::Prediction::simulation),
               predicted(&reports::Prediction::equation),
               &run == &alone ? "1"
               : run.lost     ? ""
                              : fixed(run.speedup_over(alone), 2),
               run.accuracy ? fixed(100.0 * run.accuracy->top1, 2) + "%" : ""});
  }
  std::printf("%s, batch %lld\n\n%s\n", alone.network.c_str(), static_cast<long long>(alone.batch),
              table.str().c_str());
  for (const Row& run : rows)
    if (run.accuracy && run.accuracy->not_finite > 0)
      std::printf("%s: %s\n", run.name.c_str(), not_finite_text(*run.accuracy).c_str());
  std::puts(
      "t_grad: seconds for a batch's gradient on one worker.\n"
      "t_comm: for one transfer of all weights, as the first worker timed it.\n"
      "MB out: what the first worker sends in a step, on the average.\n"
      "S: speedup over the first run (4.23), its t_grad over s/batch: of the run\n"
      "simulated; by the equations, which are of the thesis's order, without overlap,\n"
      "(4.11) for a synchronous central server, (4.12) distributed, (4.20) and (4.21)\n"
      "asynchronous.");
  for (const Row& run : rows)
    if (!target) target = run.until;
  if (target)
    std::printf(
        "\nTo %s, by the first test that reached it:\n\n%s\n"
        "s: seconds of training until then. MB: what the first worker sent and took.\n"
        "S to it: the first run's seconds over these.\n",
        target->str().c_str(), accuracy_table(rows, *target).c_str());
  bool blank = true;
  for (const Row& run : rows) {
    if (!run.mode || run.lost) continue;
    std::printf("%s%s", blank ? "\n" : "", wrap(text_of(payoff_of(run, alone))).c_str());
    blank = false;
  }
  return 0;
}

}  // namespace duplex::tools
