#include "tools/report/thesis/thesis_data.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "tools/run_directory/json_file.h"

namespace duplex::tools::reports {
namespace {

using nlohmann::json;

std::optional<double> number(const json& object, const char* name) {
  if (!object.contains(name) || object.at(name).is_null()) return std::nullopt;
  const auto value = object.at(name).get<double>();
  if (!std::isfinite(value) || value <= 0.0)
    throw Error(std::string("'") + name + "' is " + object.at(name).dump());
  return value;
}

CostsHere costs_of(const json& measured) {
  CostsHere costs;
  costs.bytes = measured.at("bytes").get<double>();
  costs.comm = number(measured, "t_comm");
  costs.comm_both = number(measured, "t_comm_both");
  costs.comm_line = number(measured, "t_comm_line");
  costs.grad_cpu = number(measured, "t_grad_cpu");
  costs.grad_gpu = number(measured, "t_grad_gpu");
  costs.grad_batch = measured.value("grad_batch", 0);
  return costs;
}

/// A later line of the same point takes the place of an earlier one.
void read_point(Thesis& thesis, const json& line) {
  ThesisPoint& point =
      thesis.points[{line.at("figure").get<std::string>(), line.at("server").get<std::string>(),
                     line.at("workers").get<int>()}];
  const auto order = line.at("order").get<std::string>();
  const bool overlap = order == "overlap", exact = order == "exact";
  const std::optional<double> speedup = number(line, "speedup");
  if (!speedup) throw Error("there is no speedup");
  thesis.commits.insert(line.at("commit").get<std::string>());
  if (line.at("kind").get<std::string>() == "simulated") {
    (exact ? point.simulated_exact : overlap ? point.simulated_overlap : point.simulated) = speedup;
  } else {
    (exact     ? point.lab_exact
     : overlap ? point.lab_overlap
               : point.lab) =
        LabResult{*speedup, line.value("busy", 0.0), line.value("disturbance", 0.0) > 1.0};
  }
}

std::optional<TransferTime> transfer_of(const json& rank, const char* what) {
  if (rank.at(what).is_null()) return std::nullopt;
  const auto times = rank.at(what).get<std::array<double, 2>>();
  if (!std::isfinite(times[0]) || !std::isfinite(times[1]) || times[1] < times[0])
    throw Error(std::string("'") + what + "' is " + rank.at(what).dump());
  return TransferTime{times[0], times[1]};
}

Iteration iteration_of(const json& diagram) {
  Iteration iteration;
  iteration.step = diagram.at("step").get<int>();
  const std::optional<double> seconds = number(diagram, "seconds");
  if (!seconds) throw Error("there is no 'seconds'");
  iteration.seconds = *seconds;
  for (const json& rank : diagram.at("ranks").get_ref<const json::array_t&>())
    iteration.ranks.push_back({transfer_of(rank, "weights"), transfer_of(rank, "gradients")});
  return iteration;
}

/// Lines that are JSON; a last one that was not finished is left out.
void read_points(Thesis& thesis, const std::string& path) {
  std::ifstream file(path);
  std::string line;
  for (int number = 1; std::getline(file, line) && !file.eof(); ++number) {
    try {
      read_point(thesis, json::parse(line));
    } catch (const std::exception& error) {
      throw Error("line " + std::to_string(number) + ": " + error.what());
    }
  }
}

}  // namespace

const std::vector<ThesisNetwork>& table_6_1() {
  static const std::vector<ThesisNetwork> table{{"vgg16e", "VGG16E", {5.153, 0.719}},
                                                {"googlenet", "GoogLeNet", {0.210, 0.763}},
                                                {"squeezenet", "SqueezeNet", {0.033, 0.758}},
                                                {"resnet34", "Resnet34", {0.811, 0.821}}};
  return table;
}

const ThesisNetwork& thesis_network(std::string_view name) {
  for (const ThesisNetwork& network : table_6_1())
    if (name == network.name) return network;
  throw Error("Table 6.1 has no network " + std::string(name));
}

const std::vector<ThesisFigure>& chapter_6() {
  using net::Sync;
  static const std::vector<ThesisFigure> figures{
      {"6.1", "vgg16e", Sync::join, 4},     {"6.2", "googlenet", Sync::join, 8},
      {"6.3", "squeezenet", Sync::join, 8}, {"6.4", "resnet34", Sync::join, 8},
      {"6.5", "googlenet", Sync::split, 8}, {"6.6", "squeezenet", Sync::split, 8},
      {"6.7", "resnet34", Sync::split, 8},  {"6.8", "vgg16e", Sync::none, 4},
      {"6.9", "googlenet", Sync::none, 8},  {"6.10", "squeezenet", Sync::none, 8},
      {"6.11", "resnet34", Sync::none, 8}};
  return figures;
}

const ThesisPoint* Thesis::point(const std::string& figure, net::ServerMode server,
                                 int workers) const {
  const auto found = points.find({figure, net::name_of(server), workers});
  return found == points.end() ? nullptr : &found->second;
}

bool is_thesis(const std::string& directory) {
  return std::filesystem::exists(directory + "/thesis.json");
}

Thesis read_thesis(const std::string& directory) {
  Thesis thesis;
  thesis.directory = directory;
  std::string file = directory + "/thesis.json";
  try {
    const json head = read_json_file(file);
    thesis.processor = head.at("processor").get<std::string>();
    thesis.kernel = head.at("kernel").get<std::string>();
    thesis.congestion = head.at("congestion").get<std::string>();
    thesis.cores = head.at("cores").get<int>();
    thesis.mbit = head.at("mbit").get<double>();
    thesis.lab = head.at("lab").get<bool>();
    file = directory + "/costs.json";
    if (std::filesystem::exists(file)) {
      const json costs = read_json_file(file);
      for (const auto& [network, measured] : costs.at("networks").items())
        thesis.costs[network] = costs_of(measured);
    }
    file = directory + "/diagrams.json";
    if (std::filesystem::exists(file)) {
      const json diagrams = read_json_file(file);
      for (const auto& [figure, diagram] : diagrams.at("figures").items())
        thesis.diagrams[figure] = iteration_of(diagram);
    }
    file = directory + "/points.jsonl";
    read_points(thesis, file);
  } catch (const json::exception& error) {
    throw Error(file + " is damaged: " + error.what());
  } catch (const Error& error) {
    const std::string what = error.what();
    throw Error(what.find(file) == std::string::npos ? file + " is damaged: " + what : what);
  }
  return thesis;
}

}  // namespace duplex::tools::reports
