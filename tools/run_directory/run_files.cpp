#include "tools/run_directory/run_files.h"

#include <cmath>
#include <filesystem>

#include "tools/run_directory/json_file.h"
#include "tools/run_directory/schema.h"

namespace duplex::tools {
namespace {

namespace fs = std::filesystem;

template <class File>
std::string write_json(File& file) {
  JsonWriter writer;
  describe(writer, file);
  // A path may have bytes that are no UTF-8.
  return writer.take().dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

template <class File>
File read_json(const std::string& path) {
  const nlohmann::json json = read_json_file(path);
  File file;
  try {
    JsonReader reader(json);
    describe(reader, file);
  } catch (const Error& error) {
    throw Error(path + " " + error.what());
  }
  return file;
}

/// A time that a run can have taken, or a rate.
std::optional<double> measured(double number) {
  if (!std::isfinite(number) || number <= 0.0) return std::nullopt;
  return number;
}

MeasuredCosts costs_of(const TransportSummary& transport) {
  MeasuredCosts costs;
  costs.comm = measured(transport.comm);
  costs.link_rate = transport.link_rate;
  if (transport.owner_rate) costs.owner_rate = measured(*transport.owner_rate);
  if (transport.seal_rate) costs.seal_rate = measured(*transport.seal_rate);
  if (transport.send_processor && transport.receive_processor) {
    costs.send_processor = measured(*transport.send_processor * 1e-9);
    costs.receive_processor = measured(*transport.receive_processor * 1e-9);
    costs.frame_processor = transport.frame_processor;
  }
  costs.what = transport.command + ", " + transport.title;
  return costs;
}

MeasuredCosts costs_of(const Run& run) {
  const RunSummary& summary = *run.summary;
  MeasuredCosts costs;
  const bool whole_batches = (!summary.mode || summary.mode->sync != net::Sync::split) &&
                             !(run.config.parallel && run.config.parallel->samples);
  if (whole_batches && !run.config.replayed && summary.training)
    costs.grad = measured(summary.training->gradient.median);
  if (costs.grad) costs.batch = run.config.batch;
  costs.gradients_down = summary.gradients_down;
  costs.weights_up = summary.weights_up;
  costs.sample_processor = summary.sample_processor;
  if (!run.config.parallel) {  // Else the gradient's time has what moving bytes took.
    costs.threads = run.config.threads;
    costs.cores = run.config.cores;
  }
  costs.link_rate = run.config.link_rate;
  if (summary.traffic) costs.comm = measured(summary.traffic->t_comm);
  costs.what =
      run.config.command + ", " + run.config.title + ", batch " + std::to_string(run.config.batch);
  if (summary.rank) costs.what += ", as rank " + std::to_string(*summary.rank) + " timed it";
  return costs;
}

std::string numbered(const char* name, int rank, const char* end) {
  return name + std::to_string(rank) + end;
}

}  // namespace

bool is_run_file(const std::string& name) {
  for (const char* whole : {config_file, summary_file, profile_file, metrics_file, accuracy_file,
                            trace_file, checkpoint_file, ema_file, checkpoints_folder})
    if (name == whole) return true;
  for (const auto& [begin, end] :
       {std::pair("rank-", ".json"), std::pair("ledger-", ".csv"), std::pair("traffic-", ".csv"),
        std::pair("staleness-", ".csv"), std::pair("transport-", ".json")}) {
    const std::string first = begin, last = end;
    if (name.size() > first.size() + last.size() && name.rfind(first, 0) == 0 &&
        name.compare(name.size() - last.size(), last.size(), last) == 0)
      return true;
  }
  return false;
}

std::string rank_file(int rank) {
  return numbered("rank-", rank, ".json");
}
std::string ledger_file(int rank) {
  return numbered("ledger-", rank, ".csv");
}
std::string traffic_file(int rank) {
  return numbered("traffic-", rank, ".csv");
}
std::string staleness_file(int rank) {
  return numbered("staleness-", rank, ".csv");
}
std::string transport_file(const std::string& role) {
  return "transport-" + role + ".json";
}

std::string text_of(RunConfig config) {
  return write_json(config);
}
std::string text_of(RunSummary summary) {
  return write_json(summary);
}
std::string text_of(TransportSummary summary) {
  return write_json(summary);
}
std::string text_of(ProfileFile profile) {
  return write_json(profile);
}

std::string not_finite_text(const AccuracySummary& accuracy) {
  return "the outputs for " + std::to_string(accuracy.not_finite) + " of " +
         std::to_string(accuracy.samples) + " test images are not finite, and count as wrong";
}

RunConfig read_config(const std::string& path) {
  return read_json<RunConfig>(path);
}
RunSummary read_summary(const std::string& path) {
  return read_json<RunSummary>(path);
}
TransportSummary read_transport(const std::string& path) {
  return read_json<TransportSummary>(path);
}
ProfileFile read_profile_file(const std::string& path) {
  return read_json<ProfileFile>(path);
}

std::string name_of_directory(const std::string& directory) {
  const fs::path path = fs::path(directory).lexically_normal();
  const std::string name = (path.has_filename() ? path : path.parent_path()).filename().string();
  return name.empty() ? directory : name;
}

std::string transport_in(const std::string& directory) {
  for (const char* role : {"worker", "ps"}) {
    std::string path = directory + "/" + transport_file(role);
    if (fs::exists(path)) return path;
  }
  return "";
}

Run read_run(const std::string& directory) {
  Run run;
  run.directory = directory;
  run.name = name_of_directory(directory);
  const std::string config = directory + "/" + config_file,
                    summary = directory + "/" + summary_file;
  if (!fs::exists(config))
    throw Error(directory + " is no run directory of local, dist or simulate: it has no " +
                config_file);
  run.config = read_config(config);
  if (fs::exists(summary)) run.summary = read_summary(summary);
  return run;
}

MeasuredCosts measured_costs(const std::string& directory) {
  const std::string transport = transport_in(directory);
  MeasuredCosts costs;
  if (!transport.empty()) {
    costs = costs_of(read_transport(transport));
  } else {
    const Run run = read_run(directory);
    if (!run.summary)
      throw Error(directory + " has no " + summary_file + ": its run has not ended");
    costs = costs_of(run);
  }
  if (!costs.grad && !costs.comm)
    throw Error(directory + " (" + costs.what + ") has measured neither t_grad nor t_comm");
  return costs;
}

}  // namespace duplex::tools
