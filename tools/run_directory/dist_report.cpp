#include "tools/run_directory/dist_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tools/text/quartiles.h"
#include "tools/text/table.h"

namespace duplex::tools {

nlohmann::ordered_json json_of(const net::TrafficSummary& traffic) {
  return {{"bytes_sent", traffic.bytes_sent},
          {"bytes_received", traffic.bytes_received},
          {"steps", traffic.steps},
          {"step_sent", traffic.step_sent},
          {"step_received", traffic.step_received},
          {"t_comm_s", traffic.t_comm},
          {"wire_s", traffic.wire_seconds},
          {"exposed_s", traffic.exposed_seconds}};
}

nlohmann::ordered_json json_of(const std::vector<net::ConnectionBytes>& connections) {
  auto list = nlohmann::ordered_json::array();
  for (const net::ConnectionBytes& each : connections) {
    nlohmann::ordered_json json{
        {"peer", each.peer}, {"sent", each.sent}, {"received", each.received}};
    if (each.window > 0) json["window"] = each.window;
    if (each.pace > 0) json["pace"] = each.pace;
    if (each.counted) {
      json["kernel_sent"] = each.kernel_sent;
      json["kernel_received"] = each.kernel_received;
      json["kernel_sent_again"] = each.kernel_sent_again;
    }
    list.push_back(std::move(json));
  }
  return list;
}

namespace {

std::string megabytes(double bytes) {
  return fixed(bytes * 1e-6, 3) + " MB";
}

}  // namespace

std::string traffic_report(const net::TrafficSummary& traffic) {
  return "wire     " + megabytes(traffic.step_sent) + " out and " +
         megabytes(traffic.step_received) + " in a step; t_comm " + duration_text(traffic.t_comm) +
         "\n         busy " + duration_text(traffic.wire_seconds) + " a step, of which " +
         duration_text(traffic.exposed_seconds) + " exposed\n";
}

std::string staleness_report(const std::vector<net::Store::Staleness>& steps) {
  double sum = 0.0, chunks = 0.0;
  std::uint64_t most = 0;
  for (const auto& step : steps) {
    sum += static_cast<double>(step.sum);
    chunks += static_cast<double>(step.chunks);
    most = std::max(most, step.most);
  }
  return "staleness " + fixed(chunks > 0.0 ? sum / chunks : 0.0, 2) + " updates by others, " +
         std::to_string(most) + " at most\n";
}

std::string staleness_csv(const std::vector<net::Store::Staleness>& steps) {
  std::string text = "worker,step,mean,most\n";
  for (const auto& step : steps) {
    const auto chunks = static_cast<double>(std::max<std::uint64_t>(step.chunks, 1));
    text += std::to_string(step.worker) + "," + std::to_string(step.step) + "," +
            fixed(static_cast<double>(step.sum) / chunks, 3) + "," + std::to_string(step.most) +
            "\n";
  }
  return text;
}

}  // namespace duplex::tools
