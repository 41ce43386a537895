#include "tools/run_directory/run_files.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.h"

namespace duplex::tools {
namespace {

using nlohmann::json;

/// A time that a run can have taken, or a rate.
std::optional<double> number_of(const json& value) {
  const auto number = value.get<double>();
  if (!std::isfinite(number) || number <= 0.0) return std::nullopt;
  return number;
}

MeasuredCosts costs_of_transport(const json& transport) {
  MeasuredCosts costs;
  costs.comm = number_of(transport.at("t_comm"));
  if (transport.contains("owner_bytes_per_s"))
    costs.owner_rate = number_of(transport["owner_bytes_per_s"]);
  costs.what = "transport, " + transport.at("title").get<std::string>();
  return costs;
}

MeasuredCosts costs_of_training(const json& config, const json& summary) {
  MeasuredCosts costs;
  const bool alone = !summary.contains("traffic");
  const bool whole_batches = alone || summary.at("sync") != "split";
  const bool computed = !config.value("replayed", false);
  if (whole_batches && computed) costs.grad = number_of(summary.at("t_grad_s").at("median"));
  if (!alone) costs.comm = number_of(summary.at("traffic").at("t_comm_s"));
  costs.what = config.at("command").get<std::string>() + ", " +
               config.at("title").get<std::string>() + ", batch " +
               std::to_string(config.at("batch").get<std::int64_t>());
  return costs;
}

}  // namespace

json read_run_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw Error(path + " cannot be read; is this the directory of a run that has ended?");
  try {
    json read = json::parse(file);
    if (read.at("version").get<int>() != 1) throw Error(path + " is of another version of duplex");
    return read;
  } catch (const nlohmann::json::exception&) {
    throw Error(path + " is damaged: it is no JSON with a version");
  }
}

MeasuredCosts measured_costs(const std::string& directory) {
  MeasuredCosts costs;
  std::string file = directory + "/config.json";
  for (const char* role : {"ps", "worker"}) {
    const std::string transport = directory + "/transport-" + role + ".json";
    if (std::filesystem::exists(transport)) file = transport;
  }
  const json first = read_run_file(file);
  try {
    costs = first.at("command") == "transport"
                ? costs_of_transport(first)
                : costs_of_training(first, read_run_file(directory + "/summary.json"));
  } catch (const json::exception& error) {
    throw Error(directory + ": " + file + " or summary.json lacks what a run has: " + error.what());
  }
  if (!costs.grad && !costs.comm)
    throw Error(directory + " (" + costs.what + ") has measured neither t_grad nor t_comm");
  return costs;
}

}  // namespace duplex::tools
