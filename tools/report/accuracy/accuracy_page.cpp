#include "tools/report/accuracy/accuracy_page.h"

#include <algorithm>

#include "tools/report/chart.h"
#include "tools/report/page.h"
#include "tools/text/table.h"

namespace duplex::tools::reports {
namespace {

/// An x axis shows this value of each point, divided by the unit that its title names.
struct Spent {
  const char* title;
  double AccuracyPoint::*value;
  double unit;
};
constexpr Spent spent_on[] = {{"seconds", &AccuracyPoint::seconds, 1.0},
                              {"GB of the first worker", &AccuracyPoint::megabytes, 1000.0}};

/// Returns a chart that has a line for the mean of each way, in a band of one standard deviation to
/// either side, and one for the target.
LineChart chart_of(const AccuracyNetwork& network, const Spent& spent) {
  LineChart chart;
  chart.title = "top-1";
  chart.x = spent.title;
  chart.y = "%";
  chart.from_zero = false;
  chart.percent = true;
  double most = 0.0;
  std::vector<Series> lines;
  for (std::size_t way = 0; way < network.ways.size(); ++way) {
    const int colour = static_cast<int>(way);
    Series band{"", {}, Series::Style::band, colour, {}};
    Series line{network.ways[way].name, {}, Series::Style::line, colour};
    for (const AccuracyPoint& point : network.ways[way].points) {
      const double x = point.*spent.value / spent.unit;
      line.points.emplace_back(x, point.top1);
      band.points.emplace_back(x, std::min(point.top1 + point.deviation, 100.0));
      band.lower.emplace_back(x, std::max(point.top1 - point.deviation, 0.0));
      most = std::max(most, x);
    }
    chart.series.push_back(std::move(band));
    lines.push_back(std::move(line));
  }
  chart.series.insert(chart.series.end(), lines.begin(), lines.end());
  chart.series.push_back({"target, " + number_text(network.target) + " %",
                          {{0.0, network.target}, {most, network.target}},
                          Series::Style::dotted,
                          static_cast<int>(network.ways.size())});
  return chart;
}

void add_network(Page& page, const AccuracyNetwork& network, std::vector<std::string> columns) {
  page.heading(2, network.name, network.name);
  page.html("<p><strong>" + escape(network.conclusion) + "</strong> " + escape(network.about) +
            "</p>");
  page.html("<div class=\"pair\">");
  for (const Spent& spent : spent_on) page.figure(svg(chart_of(network, spent)), "");
  page.html("</div>");
  columns.insert(columns.begin(), "way");
  std::vector<Page::Row> rows;
  std::string commands;
  for (const AccuracyWay& way : network.ways) {
    rows.push_back({way.name});
    rows.back().insert(rows.back().end(), way.cells.begin(), way.cells.end());
    commands +=
        "<dt>" + escape(way.name) + "</dt><dd><code>duplex " + escape(way.flags) + "</code></dd>\n";
  }
  page.table(columns, rows);
  page.begin_fold("The commands of " + network.name);
  page.html("<dl>" + commands + "</dl>");
  page.end_fold();
}

}  // namespace

std::string accuracy_page(const AccuracyResults& results) {
  Page page("Time to accuracy");
  page.heading(1, "Time to accuracy");
  for (const std::string& paragraph : results.about) page.paragraph(paragraph);
  page.paragraph(
      "The charts show the mean over the seeds at each test, in a band of one standard deviation "
      "to either side; one machine sends nothing, so its line of bytes is upright.");
  for (const AccuracyNetwork& network : results.networks)
    add_network(page, network, results.columns);
  return page.str();
}

}  // namespace duplex::tools::reports
