#include "tools/report/step_traffic.h"

#include <algorithm>

#include "net/ledger/ledger_row.h"
#include "tools/report/ledgers.h"
#include "tools/run_directory/row_file.h"

namespace duplex::tools::reports {
namespace {

constexpr std::size_t points_at_most = 200;

}  // namespace

std::vector<net::StepTraffic> read_step_traffic(const std::string& path, bool complete) {
  std::map<std::uint64_t, net::StepTraffic> sums;
  for (const net::StepTraffic& part : read_rows<net::StepTraffic>(path, complete)) {
    net::StepTraffic& step = sums[part.step];
    step.step = part.step;
    step += part;
  }
  std::vector<net::StepTraffic> steps;
  for (const auto& [number, step] : sums) steps.push_back(step);
  return steps;
}

LineChart traffic_chart(const std::vector<net::StepTraffic>& steps, const std::string& step) {
  LineChart chart;
  chart.title = "Communication of the " + step + "s";
  chart.x = step;
  chart.y = "ms";
  const auto line = [&](const char* name, int colour, Series::Style style,
                        std::int64_t net::StepTraffic::*value) {
    Series series{name, {}, style, colour};
    const std::size_t stretch = std::max<std::size_t>(1, steps.size() / points_at_most);
    for (std::size_t from = 0; from + stretch <= steps.size(); from += stretch) {
      double sum = 0.0;
      for (std::size_t i = from; i < from + stretch; ++i)
        sum += static_cast<double>(steps[i].*value);
      series.points.emplace_back(static_cast<double>(steps[from].step),
                                 sum * 1e-6 / static_cast<double>(stretch));
    }
    chart.series.push_back(std::move(series));
  };
  line("wire", 0, Series::Style::line, &net::StepTraffic::wire_ns);
  line("exposed", 1, Series::Style::dashed, &net::StepTraffic::exposed_ns);
  return chart;
}

std::string frames_left_out(const std::map<int, std::optional<net::FramesKept>>& ranks,
                            const std::string& step) {
  std::map<std::string, std::vector<int>> by_text;
  for (const auto& [rank, kept] : ranks)
    if (kept && kept->text != "all") by_text[kept->text].push_back(rank);
  if (by_text.empty()) return "";
  std::string text;
  for (const auto& [kept, those] : by_text)
    text += (text.empty() ? "" : "; ") + ranks_text(those) + ": " + kept;
  return "The ledgers do not have the frames of all " + step + "s" +
         (step == "step" ? "" : ", each of which is a step here") + ". What they have: " + text +
         ". What follows of tensors is of these " + step +
         "s; traffic-RANK.csv has the sums of all.";
}

}  // namespace duplex::tools::reports
