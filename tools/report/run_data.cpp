#include "tools/report/run_data.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "core/error.h"
#include "net/topology/topology.h"
#include "tools/run_directory/row_file.h"
#include "tools/run_directory/run_files.h"

namespace duplex::tools::reports {
namespace {

namespace fs = std::filesystem;

std::optional<double> known(double number) {
  return std::isfinite(number) ? std::optional(number) : std::nullopt;
}

void take_parallel(RunData& run, const ParallelConfig& config) {
  run.parallel = true;
  run.strategy = config.strategy.value_or("");
  run.stages = config.stages.value_or("");
  run.micro_batches = config.micro_batches.value_or(1);
  run.ranks = config.ranks;
  run.workers = config.workers;
  run.server = config.server;
  run.sync = config.sync;
  run.shards = config.shards;
  if (config.samples) run.samples = *config.samples;
  if (config.slots) run.slots = *config.slots;
  run.overlap = config.overlap;
  run.semaphore = config.semaphore;
  run.average = config.average;
  run.wire = config.wire;
  run.factors = parse_factors(config.factors.value_or("off"));
}

void take_config(RunData& run, const RunConfig& config) {
  const std::string file = run.directory + "/" + config_file;
  run.command = config.command;
  run.network = config.network;
  run.title = config.title;
  run.network_file = config.network_file.value_or("");
  run.input = config.input;
  run.height = std::atoll(run.input.substr(run.input.rfind('x') + 1).c_str());
  if (run.input.rfind("1x", 0) == 0) run.input.erase(0, 2);  // One sample.
  if (run.height < 1) throw Error(file + " is damaged: '" + run.input + "' is no input");
  try {
    if (config.until) run.until = parse_accuracy_target(*config.until);
  } catch (const Error& error) {
    throw Error(file + " is damaged: " + error.what());
  }
  run.classes = static_cast<int>(config.classes);
  run.batch = config.batch;
  run.device = config.device;
  run.threads = config.threads;
  run.cores = config.cores;
  run.settings = config.settings;
  run.link_rate = config.link_rate;
  run.auxiliary = config.auxiliary;
  run.padded = config.pad_shortcuts;
  run.replayed = config.replayed;
  run.simulated = config.simulated;
  if (config.addresses)
    run.machines = *config.addresses;
  else if (config.host)
    run.machines = {*config.host};
  if (config.data) run.data = config.data->description;
  if (config.simulation) run.simulated_grad = config.simulation->grad;
  run.plan = config.plan;
  if (config.parallel) take_parallel(run, *config.parallel);
  if (run.workers < 1 || run.ranks < run.workers) throw Error(file + " is damaged: no workers");
  if (!run.slots.empty() && (run.slots.size() != static_cast<std::size_t>(run.workers) ||
                             *std::min_element(run.slots.begin(), run.slots.end()) < 1))
    throw Error(file + " is damaged: its slots are not those of its workers");
  if (!run.samples.empty() &&
      (run.samples.size() != static_cast<std::size_t>(run.cut() ? run.ranks : run.workers) ||
       *std::min_element(run.samples.begin(), run.samples.end()) < 0))
    throw Error(file + " is damaged: its samples are not those of its workers");
  if (run.ranks > net::most_ranks)
    throw Error(file + " is damaged: it has " + std::to_string(run.ranks) + " ranks");
}

void take_summary(RunData& run, const RunSummary& summary) {
  run.ended = true;
  run.complete = !summary.ended_by;
  if (summary.training) {
    run.steps = summary.training->steps;
    run.grad = known(summary.training->gradient.median);
    run.step = known(summary.training->total.median);
    run.await = known(summary.training->await.median);
  }
  run.gradients_down = summary.gradients_down;
  run.weights_up = summary.weights_up;
  run.sample_processor = summary.sample_processor;
  run.accuracy = summary.accuracy;
}

RankSummary rank_of(const RunSummary& summary) {
  RankSummary rank;
  if (summary.traffic) rank.traffic = *summary.traffic;
  if (summary.training) rank.steps = summary.training->steps;
  if (summary.training && summary.training->seconds > 0.0)
    rank.pace =
        static_cast<double>(summary.training->timed_steps.value_or(summary.training->steps)) /
        summary.training->seconds;
  if (summary.connections) rank.connections = *summary.connections;
  rank.frames = summary.ledger;
  rank.stragglers = summary.stragglers;
  rank.lost = summary.lost.value_or(std::vector<int>());
  return rank;
}

}  // namespace

bool RunData::has_trace() const {
  return fs::exists(directory + "/" + trace_file);
}

TraceData RunData::trace() const {
  return read_trace(directory + "/" + trace_file);
}

std::vector<net::StepTraffic> RunData::step_traffic() const {
  const std::string path = directory + "/" + traffic_file(first_worker());
  if (!fs::exists(path)) return {};
  return read_step_traffic(path, rank_summaries.count(first_worker()) > 0);
}

std::optional<RankComm> RunData::link_comm() const {
  std::optional<RankComm> shortest;
  for (const auto& [rank, summary] : rank_summaries) {
    const double comm = summary.traffic.t_comm;
    if (comm > 0.0 && (!shortest || comm < shortest->seconds)) shortest = RankComm{rank, comm};
  }
  return shortest;
}

std::optional<double> RunData::throughput() const {
  if (sync != net::Sync::none) {
    if (!step || *step <= 0.0) return std::nullopt;
    return batches_a_step() / *step;
  }
  if (!lost().empty()) return std::nullopt;
  double sum = 0.0;
  int timed = 0;
  for (const auto& [rank, summary] : rank_summaries) {
    sum += summary.pace;
    timed += summary.pace > 0.0 ? 1 : 0;
  }
  if (timed < workers) return std::nullopt;
  return sum;
}

std::set<int> RunData::lost() const {
  std::set<int> lost;
  for (const auto& [rank, summary] : rank_summaries)
    lost.insert(summary.lost.begin(), summary.lost.end());
  return lost;
}

bool is_link(const std::string& directory) {
  return !transport_in(directory).empty();
}

LinkData read_link(const std::string& directory) {
  const TransportSummary transport = read_transport(transport_in(directory));
  if (!(transport.comm > 0.0)) throw Error(directory + " (transport) has measured no t_comm");
  const MeasuredCosts costs = measured_costs(directory);
  LinkData link{name_of_directory(directory), transport.title, transport.comm, {}, {}, {}, {}, {}};
  link.send_processor = costs.send_processor;
  link.receive_processor = costs.receive_processor;
  link.frame_processor = costs.frame_processor;
  link.owner_rate = costs.owner_rate;
  link.link_rate = transport.link_rate;
  return link;
}

std::string RunData::cut_text() const {
  if (!cut()) return "";
  return strategy + (stages.empty() ? "" : " " + stages) + ", " + std::to_string(micro_batches) +
         (micro_batches == 1 ? " micro-batch" : " micro-batches");
}

models::ModelOptions RunData::options() const {
  models::ModelOptions options;
  options.classes = classes;
  options.input = height;
  options.channels = std::max(0LL, std::atoll(input.c_str()));  // "3x224x224".
  options.file = network_file;
  options.auxiliary = auxiliary;
  options.zero_padded_shortcuts = padded;
  return options;
}

RunData read_run_data(const std::string& directory) {
  const Run read = read_run(directory);
  RunData run;
  run.directory = read.directory;
  run.name = read.name;
  take_config(run, read.config);
  if (read.summary) take_summary(run, *read.summary);
  const std::string in = directory + "/";
  if (fs::exists(in + profile_file))
    for (const ProfileLayer& layer : read_profile_file(in + profile_file).layers)
      run.layers.push_back({layer.name, layer.forward, layer.backward});
  for (int rank = 0; rank < run.ranks; ++rank)
    if (fs::exists(in + rank_file(rank)))
      run.rank_summaries[rank] = rank_of(read_summary(in + rank_file(rank)));
  if (fs::exists(in + evaluation_file)) run.evaluation = read_evaluation(in + evaluation_file);
  if (fs::exists(in + metrics_file))
    run.metrics = read_rows<StepMetrics>(in + metrics_file, run.complete);
  if (fs::exists(in + accuracy_file))
    run.tests = read_rows<AccuracyRow>(in + accuracy_file, run.complete);
  return run;
}

}  // namespace duplex::tools::reports
