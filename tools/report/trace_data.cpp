#include "tools/report/trace_data.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.h"

namespace duplex::tools::reports {
namespace {

using nlohmann::json;

void add(TraceData& trace, const json& event) {
  const std::string phase = event.at("ph").get<std::string>();
  const auto number = [&](const char* name) { return event.at(name).get<int>(); };
  if (phase == "M") {
    const std::string name = event.at("args").value("name", "");
    if (event.at("name") == "process_name") trace.ranks[number("pid")] = name;
    if (event.at("name") == "thread_name") trace.rows[{number("pid"), number("tid")}] = name;
  } else if (phase == "X") {
    const json& told = event.at("args");
    trace.spans.push_back({number("pid"), number("tid"), event.at("name").get<std::string>(),
                           event.at("cat").get<std::string>(), told.value("for", ""),
                           told.at("step").get<std::int64_t>(), event.at("ts").get<double>(),
                           event.at("dur").get<double>()});
  }
}

}  // namespace

TraceData TraceData::last(int steps) const {
  std::int64_t newest = 0;
  for (const TraceSpan& span : spans) newest = std::max(newest, span.step);
  TraceData part{ranks, rows, {}};
  std::copy_if(spans.begin(), spans.end(), std::back_inserter(part.spans),
               [&](const TraceSpan& span) { return span.step + steps > newest; });
  return part;
}

std::vector<LayerSeconds> TraceData::layers(int rank) const {
  std::vector<LayerSeconds> layers;
  std::map<std::string, std::size_t> numbers;
  std::set<std::int64_t> steps;
  for (const TraceSpan& span : spans) {
    if (span.rank != rank || (span.category != "forward" && span.category != "backward")) continue;
    const auto [found, added] = numbers.emplace(span.name, layers.size());
    if (added) layers.push_back({span.name});
    LayerSeconds& layer = layers[found->second];
    (span.category == "forward" ? layer.forward : layer.backward) += span.takes * 1e-6;
    steps.insert(span.step);
  }
  for (LayerSeconds& layer : layers) {
    layer.forward /= static_cast<double>(steps.size());
    layer.backward /= static_cast<double>(steps.size());
  }
  return layers;
}

TraceData read_trace(const std::string& path) {
  std::ifstream stream(path);
  TraceData trace;
  try {
    const json file = json::parse(stream);
    if (file.at("otherData").at("version") != 1)
      throw Error(path + " is of another version of duplex");
    for (const json& event : file.at("traceEvents")) add(trace, event);
  } catch (const json::exception& error) {
    throw Error(path + " is damaged: " + error.what());
  }
  std::stable_sort(trace.spans.begin(), trace.spans.end(),
                   [](const TraceSpan& a, const TraceSpan& b) { return a.begin < b.begin; });
  return trace;
}

}  // namespace duplex::tools::reports
