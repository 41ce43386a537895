// duplex compare RUN...: what computing and communicating cost in each run, and whether training in
// parallel paid: speedup predicted by the equations from the first run's t_grad, and speedup
// measured.
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "tools/commands.h"
#include "tools/flags/command_line.h"
#include "tools/prediction/equations.h"
#include "tools/run_directory/run_files.h"
#include "tools/text/quartiles.h"
#include "tools/text/table.h"

namespace duplex::tools {
namespace {

struct Run {
  std::string name;
  std::string network, server, sync = "join";
  std::int64_t batch = 0;
  int workers = 1;
  double t_grad = 0.0, t_comm = 0.0;
  double sent = 0.0, received = 0.0;  ///< Bytes a worker sends and receives in a step.
  double step = 0.0;                  ///< Seconds.
  double steps = 0.0;                 ///< That a worker took.
  bool averages = false, replayed = false, simulated = false;
  double top1 = -1.0;  ///< Negative: not tested.

  /// In a step every worker does a batch, or its part of one.
  double batches_a_step() const { return sync == "split" ? 1 : workers; }
  double per_batch() const { return step / batches_a_step(); }
};

Run read_run(const std::string& directory) {
  const nlohmann::json config = read_run_file(directory + "/config.json");
  const nlohmann::json summary = read_run_file(directory + "/summary.json");
  try {
    Run run;
    run.name = std::filesystem::path(directory).lexically_normal().filename().string();
    if (run.name.empty()) run.name = directory;
    run.network = config.at("title").get<std::string>();
    run.batch = config.at("batch").get<std::int64_t>();
    run.workers = summary.at("workers").get<int>();
    run.replayed = config.value("replayed", false);
    run.simulated = config.value("simulated", false);
    run.steps = summary.at("steps").get<double>();
    run.t_grad = summary.at("t_grad_s").at("median").get<double>();
    run.step = summary.at("step_s").at("median").get<double>();
    if (summary.contains("accuracy")) run.top1 = summary["accuracy"].at("top1").get<double>();
    if (summary.contains("traffic")) {
      const nlohmann::json& traffic = summary["traffic"];
      run.server = summary.at("server").get<std::string>();
      run.sync = summary.at("sync").get<std::string>();
      run.averages = config.at("average").get<std::uint64_t>() > 0;
      run.t_comm = traffic.at("t_comm_s").get<double>();
      run.sent = traffic.at("step_sent").get<double>();
      run.received = traffic.at("step_received").get<double>();
    }
    if (run.workers < 1 || !(run.step > 0.0) || !(run.t_grad > 0.0)) {
      throw Error(directory + ": the run has no step that was timed");
    }
    return run;
  } catch (const nlohmann::json::exception& error) {
    throw Error(directory + ": summary.json or config.json lacks what a run has: " + error.what());
  }
}

std::string bytes_cell(double bytes) {
  return bytes > 0.0 ? fixed(bytes * 1e-6, 2) : "";
}

}  // namespace

int compare(int argc, const char* const* argv) {
  CLI::App app{
      "Puts runs side by side. The first, of one machine, is what speedup is measured against.",
      "duplex compare"};
  std::vector<std::string> directories;
  app.add_option("RUN", directories, "run directories")->required();
  if (const auto done = parse(app, argc, argv)) return *done;

  std::vector<Run> runs;
  for (const std::string& directory : directories) {
    try {
      runs.push_back(read_run(directory));
    } catch (const Error& error) {
      if (runs.empty()) throw;  // All others are set beside the first.
      std::fprintf(stderr, "left out: %s\n", error.what());
    }
  }
  const Run& alone = runs.front();
  if (alone.workers != 1) {
    throw Error("compare: the first run, " + directories.front() + ", is not of one machine",
                Exit::usage);
  }
  Table table({{"run", Table::Align::left},
               {"N", Table::Align::right},
               {"t_grad", Table::Align::right},
               {"t_comm", Table::Align::right},
               {"MB out", Table::Align::right},
               {"MB in", Table::Align::right},
               {"s/batch", Table::Align::right},
               {"S pred.", Table::Align::right},
               {"S meas.", Table::Align::right},
               {"top-1", Table::Align::right}});
  for (const Run& run : runs) {
    if (run.network != alone.network || run.batch != alone.batch) {
      throw Error("compare: " + run.name + " (" + run.network + ", batch " +
                      std::to_string(run.batch) + ") and " + alone.name + " (" + alone.network +
                      ", batch " + std::to_string(alone.batch) + ") do not train the same",
                  Exit::usage);
    }
    std::string predicted = "1";
    if (run.averages) {
      predicted = "";  // The thesis has no equation for it.
    } else if (!run.server.empty()) {
      predicted = fixed(speedup({run.t_comm, alone.t_grad}, net::parse_sync(run.sync),
                                net::parse_server_mode(run.server), run.workers,
                                run.steps * run.batches_a_step()),
                        2);
    }
    table.row({run.name + (run.simulated  ? " (simulated)"
                           : run.replayed ? " (replayed)"
                                          : ""),
               std::to_string(run.workers), duration_text(run.t_grad),
               run.server.empty() ? "" : duration_text(run.t_comm), bytes_cell(run.sent),
               bytes_cell(run.received), fixed(run.per_batch(), 5), predicted,
               &run == &alone ? "1" : fixed(alone.per_batch() / run.per_batch(), 2),
               run.top1 >= 0.0 ? fixed(100.0 * run.top1, 2) + "%" : ""});
  }
  std::printf("%s, batch %lld\n\n%s\n", alone.network.c_str(), static_cast<long long>(alone.batch),
              table.str().c_str());
  std::puts(
      "t_grad: seconds for a batch's gradient on one worker. t_comm: for one transfer of all "
      "weights.\n"
      "MB: what one worker sends and receives in a step.\n"
      "S: speedup over the first run (4.23), predicted by (4.11) for a synchronous central "
      "server,\n"
      "(4.12) distributed, (4.20) and (4.21) asynchronous.");
  return 0;
}

}  // namespace duplex::tools
