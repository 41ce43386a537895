#include "tools/run_directory/dist_report.h"

#include <algorithm>

#include "tools/text/quartiles.h"
#include "tools/text/table.h"

namespace duplex::tools {

namespace {

std::string megabytes(double bytes) {
  return fixed(bytes * 1e-6, 3) + " MB";
}

}  // namespace

std::string traffic_report(const net::TrafficSummary& traffic, int rank, bool averages) {
  const std::string step = averages ? "an averaging" : "a step";
  const auto bytes = static_cast<double>(traffic.bytes_sent + traffic.bytes_received);
  const auto saved = static_cast<double>(traffic.saved_sent + traffic.saved_received);
  return "wire     " + megabytes(traffic.step_sent) + " out and " +
         megabytes(traffic.step_received) + " in " + step + "; t_comm of rank " +
         std::to_string(rank) + " " + duration_text(traffic.t_comm) + "\n         busy " +
         duration_text(traffic.wire_seconds) + " " + step + ", of which " +
         duration_text(traffic.exposed_seconds) + " exposed\n" +
         (saved == 0.0 ? std::string()
                       : "         " + fixed(100.0 * bytes / (bytes + saved), 1) +
                             "% of the bytes that float32 takes\n");
}

std::string plan_report(const PlanConfig& plan, double step, std::uint64_t images) {
  if (!(step > 0.0)) return "";
  const double speedup = plan.alone * static_cast<double>(images) / step;
  return std::string("plan     ") + (speedup > 1.0 ? "paid: " : "did not pay: ") +
         fixed(speedup, 2) + " times as fast as one machine; " + fixed(plan.speedup, 2) +
         " foreseen\n         for " + plan.way + ", in steps of " + duration_text(plan.step) + "\n";
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

std::vector<StalenessRow> staleness_rows(const std::vector<net::Store::Staleness>& steps) {
  std::vector<StalenessRow> rows;
  for (const auto& step : steps) {
    const auto chunks = static_cast<double>(std::max<std::uint64_t>(step.chunks, 1));
    rows.push_back({step.worker, step.step, static_cast<double>(step.sum) / chunks, step.most});
  }
  return rows;
}

std::vector<StragglerSummary> straggler_summaries(const std::vector<net::StragglerTime>& times,
                                                  const std::vector<int>& workers) {
  std::vector<StragglerSummary> summaries;
  for (const net::StragglerTime& each : times)
    summaries.push_back({workers[static_cast<std::size_t>(each.worker)], each.steps,
                         static_cast<double>(each.late_ns) * 1e-9,
                         static_cast<double>(each.receiving_ns) * 1e-9});
  return summaries;
}

}  // namespace duplex::tools
