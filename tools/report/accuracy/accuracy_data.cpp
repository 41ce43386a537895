#include "tools/report/accuracy/accuracy_data.h"

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "tools/run_directory/json_file.h"

namespace duplex::tools::reports {
namespace {

using nlohmann::json;

const char* const results_file = "/accuracy.json";

double number(const json& object, const char* name) {
  const auto value = object.at(name).get<double>();
  if (!std::isfinite(value) || value < 0.0)
    throw Error(std::string("'") + name + "' is " + object.at(name).dump());
  return value;
}

AccuracyWay way_of(const json& way) {
  AccuracyWay read{way.at("name").get<std::string>(),
                   way.at("flags").get<std::string>(),
                   way.at("cells").get<std::vector<std::string>>(),
                   {}};
  for (const json& point : way.at("points").get_ref<const json::array_t&>())
    read.points.push_back({number(point, "seconds"), number(point, "megabytes"),
                           number(point, "top1"), number(point, "deviation")});
  return read;
}

AccuracyNetwork network_of(const json& network, std::size_t columns) {
  AccuracyNetwork read{network.at("name").get<std::string>(),
                       network.at("about").get<std::string>(),
                       network.at("conclusion").get<std::string>(),
                       number(network, "target"),
                       {}};
  for (const json& way : network.at("ways").get_ref<const json::array_t&>()) {
    read.ways.push_back(way_of(way));
    if (read.ways.back().cells.size() != columns)
      throw Error("'cells' of " + read.ways.back().name + " are not as many as 'columns'");
  }
  return read;
}

}  // namespace

bool is_accuracy(const std::string& directory) {
  return std::filesystem::exists(directory + results_file);
}

AccuracyResults read_accuracy(const std::string& directory) {
  const std::string file = directory + results_file;
  const json results = read_json_file(file);
  try {
    AccuracyResults read{results.at("about").get<std::vector<std::string>>(),
                         results.at("columns").get<std::vector<std::string>>(),
                         {}};
    for (const json& network : results.at("networks").get_ref<const json::array_t&>())
      read.networks.push_back(network_of(network, read.columns.size()));
    return read;
  } catch (const std::exception& error) {
    throw Error(file + " is damaged: " + error.what() +
                "; make accuracy writes it anew from the trainings beside it");
  }
}

}  // namespace duplex::tools::reports
