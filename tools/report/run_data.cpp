#include "tools/report/run_data.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "tools/run_directory/run_files.h"
#include "tools/text/cells.h"

namespace duplex::tools::reports {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

std::optional<double> number(const json& value) {
  if (!value.is_number()) return std::nullopt;
  const auto read = value.get<double>();
  if (!std::isfinite(read) || read < 0.0) throw Error("'" + value.dump() + "' is no time");
  return read;
}

void read_config(RunData& run, const json& config) {
  run.command = config.at("command").get<std::string>();
  run.network = config.at("network").get<std::string>();
  run.title = config.at("title").get<std::string>();
  run.input = config.at("input").get<std::string>();
  run.height = std::atoll(run.input.substr(run.input.rfind('x') + 1).c_str());
  if (run.input.rfind("1x", 0) == 0) run.input.erase(0, 2);  // Of one sample.
  if (run.height < 1) throw Error("'" + run.input + "' is no input");
  run.classes = config.at("classes").get<int>();
  run.batch = config.at("batch").get<std::int64_t>();
  run.device = config.at("device").get<std::string>();
  run.settings = config.value("settings", "");
  run.auxiliary = config.value("auxiliary", false);
  run.padded = config.value("pad_shortcuts", false);
  run.replayed = config.value("replayed", false);
  run.simulated = config.value("simulated", false);
  if (config.contains("addresses"))
    run.machines = config["addresses"].get<std::vector<std::string>>();
  else if (config.contains("host"))
    run.machines = {config["host"].get<std::string>()};
  if (config.contains("data")) run.data = config["data"].value("description", "");
  if (config.contains("t_grad_s")) run.simulated_grad = number(config["t_grad_s"]);
  run.parallel = config.contains("workers");
  if (!run.parallel) return;
  run.ranks = config.at("ranks").get<int>();
  run.workers = config.at("workers").get<int>();
  if (run.workers < 1 || run.ranks < run.workers) throw Error("no workers");
  run.server = net::parse_server_mode(config.at("server").get<std::string>());
  run.sync = net::parse_sync(config.at("sync").get<std::string>());
  run.shards = net::parse_shards(config.at("shards").get<std::string>());
  run.overlap = config.at("overlap").get<std::string>() == "on";
  run.semaphore = config.at("semaphore").get<std::string>() == "on";
  run.averages = config.at("average").get<std::uint64_t>() > 0;
}

void read_summary(RunData& run, const json& summary) {
  run.complete = true;
  run.steps = summary.value("steps", std::uint64_t{0});
  if (summary.contains("t_grad_s")) run.grad = number(summary["t_grad_s"].at("median"));
  if (summary.contains("step_s")) run.step = number(summary["step_s"].at("median"));
  if (summary.contains("accuracy")) {
    run.top1 = number(summary["accuracy"].at("top1"));
    run.top5 = number(summary["accuracy"].at("top5"));
  }
  if (summary.contains("ended_by")) run.complete = false;
}

RankSummary rank_of(const json& file) {
  RankSummary rank;
  const json& traffic = file.at("traffic");
  rank.sent = traffic.at("bytes_sent").get<std::uint64_t>();
  rank.received = traffic.at("bytes_received").get<std::uint64_t>();
  rank.comm = traffic.at("t_comm_s").get<double>();
  rank.wire = traffic.at("wire_s").get<double>();
  rank.exposed = traffic.at("exposed_s").get<double>();
  if (file.contains("steps")) {
    const double seconds = file.at("seconds").get<double>();
    if (seconds > 0.0) rank.pace = file["steps"].get<double>() / seconds;
  }
  for (const json& connection : file.value("connections", json::array())) {
    net::ConnectionBytes bytes;
    bytes.peer = connection.at("peer").get<int>();
    bytes.sent = connection.at("sent").get<std::uint64_t>();
    bytes.received = connection.at("received").get<std::uint64_t>();
    bytes.counted = connection.contains("kernel_sent");
    if (bytes.counted) {
      bytes.kernel_sent = connection["kernel_sent"].get<std::uint64_t>();
      bytes.kernel_received = connection.at("kernel_received").get<std::uint64_t>();
      bytes.kernel_sent_again = connection.value("kernel_sent_again", std::uint64_t{0});
    }
    rank.connections.push_back(bytes);
  }
  return rank;
}

/// Rows of a file that has these columns; an empty cell is none, and so is the loss of a network
/// that has diverged ("nan", "inf"). A last line that is not whole is left out of a run that was
/// interrupted.
std::vector<std::vector<std::optional<double>>> read_rows(const std::string& path,
                                                          const std::string& columns,
                                                          bool complete) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line) || line != columns)
    throw Error(path + " is no " + fs::path(path).filename().string() +
                " of this version of duplex");
  const std::vector<std::string> names = cells_of(columns, ',');
  const std::size_t count = names.size();
  std::vector<std::vector<std::optional<double>>> rows;
  while (std::getline(file, line)) {
    const std::vector<std::string> cells = cells_of(line, ',');
    const bool last = file.peek() == std::ifstream::traits_type::eof();
    bool good = cells.size() == count && !cells.back().empty();
    std::vector<std::optional<double>> row;
    for (std::size_t i = 0; good && i < count; ++i) {
      row.emplace_back();
      if (cells[i].empty()) continue;
      char* end = nullptr;
      row.back() = std::strtod(cells[i].c_str(), &end);
      good = *end == '\0';
      if (std::isfinite(*row.back())) continue;
      good = good && names[i] == "loss";
      row.back().reset();
    }
    if (!good) {
      if (last && !complete) break;
      throw Error(path + " is damaged: '" + line + "' is no row of it");
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

void read_metrics(RunData& run, const std::string& path) {
  for (const auto& row : read_rows(
           path, "step,epoch,loss,rate,total_s,data_s,gradient_s,await_s,push_s", run.complete))
    run.metrics.push_back({static_cast<std::uint64_t>(row[0].value_or(0.0)), row[2],
                           row[4].value_or(0.0), row[5].value_or(0.0), row[6].value_or(0.0),
                           row[7].value_or(0.0), row[8].value_or(0.0)});
}

void read_accuracy(RunData& run, const std::string& path) {
  for (const auto& row : read_rows(path, "step,epoch,samples,top1,top5,loss", run.complete))
    run.tests.push_back({row[0].value_or(0.0), row[3].value_or(0.0), row[4].value_or(0.0)});
}

void read_profile(RunData& run, const json& profile) {
  for (const json& layer : profile.at("layers"))
    run.layers.push_back({layer.at("name").get<std::string>(),
                          number(layer.at("forward_s")).value_or(0.0),
                          number(layer.at("backward_s")).value_or(0.0)});
}

std::string name_of(const std::string& directory) {
  std::string name = fs::path(directory).lexically_normal().filename().string();
  return name.empty() ? directory : name;
}

}  // namespace

bool RunData::has_trace() const {
  return fs::exists(directory + "/trace.json");
}

std::optional<double> RunData::link_comm() const {
  std::optional<double> least;
  for (const auto& [rank, summary] : rank_summaries)
    if (summary.comm > 0.0) least = std::min(least.value_or(summary.comm), summary.comm);
  return least;
}

std::optional<double> RunData::throughput() const {
  if (sync != net::Sync::none) {
    if (!step || *step <= 0.0) return std::nullopt;
    return batches_a_step() / *step;
  }
  double sum = 0.0;
  int timed = 0;
  for (const auto& [rank, summary] : rank_summaries) {
    sum += summary.pace;
    timed += summary.pace > 0.0 ? 1 : 0;
  }
  if (timed < workers) return std::nullopt;
  return sum;
}

bool is_link(const std::string& directory) {
  return fs::exists(directory + "/transport-ps.json") ||
         fs::exists(directory + "/transport-worker.json");
}

LinkData read_link(const std::string& directory) {
  const MeasuredCosts costs = measured_costs(directory);
  const std::string prefix = "transport, ";
  LinkData link{name_of(directory), costs.what.substr(prefix.size()), costs.comm.value_or(0.0)};
  return link;
}

models::ModelOptions RunData::options() const {
  models::ModelOptions options;
  options.classes = classes;
  options.input = height;
  options.auxiliary = auxiliary;
  options.zero_padded_shortcuts = padded;
  return options;
}

RunData read_run(const std::string& directory) {
  RunData run;
  run.directory = directory;
  run.name = name_of(directory);
  if (!fs::exists(directory + "/config.json"))
    throw Error(directory +
                " is no run directory of local, dist or simulate: it has no config.json");
  std::string file;
  const auto read = [&](const std::string& name, auto&& act) {
    file = directory + "/" + name;
    if (fs::exists(file)) act(run, read_run_file(file));
  };
  try {
    read("config.json", read_config);
    read("summary.json", read_summary);
    read("profile.json", read_profile);
    for (int rank = 0; rank < run.ranks; ++rank)
      read("rank-" + std::to_string(rank) + ".json",
           [rank](RunData& to, const json& from) { to.rank_summaries[rank] = rank_of(from); });
    file = directory + "/metrics.csv";
    if (fs::exists(file)) read_metrics(run, file);
    file = directory + "/accuracy.csv";
    if (fs::exists(file)) read_accuracy(run, file);
  } catch (const json::exception& error) {
    throw Error(file + " is damaged: " + error.what());
  } catch (const Error& error) {
    const std::string what = error.what();
    throw Error(what.find(file) == std::string::npos ? file + " is damaged: " + what : what);
  }
  return run;
}

}  // namespace duplex::tools::reports
