#include "tools/display/learning_curves.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "tools/display/text_chart.h"
#include "tools/run_directory/row_file.h"
#include "tools/run_directory/rows.h"
#include "tools/run_directory/run_files.h"

namespace duplex::tools {
namespace {

constexpr std::size_t fewest_columns = 40, most_columns = 120, longest_number = 6;  // "[999] ".
constexpr std::size_t loss_lines = 12, accuracy_lines = 9;

/// The first and the last step of a curve.
struct Ends {
  std::uint64_t from = 0, to = 0;

  void take(std::uint64_t step) {
    from = from == 0 ? step : from;
    to = step;
  }
};

TextChart chart_for(const Display& display, const std::string& title, std::size_t lines,
                    const Ends& ends) {
  TextChart chart;
  chart.title = title;
  chart.x = "steps";
  chart.from = ends.from;
  chart.to = ends.to;
  chart.lines = lines;
  // launch puts the rank's number in front of each line.
  const std::size_t before = display.kind == Display::Kind::launched ? longest_number : 0;
  chart.columns =
      std::clamp(display.width() - std::min(before, display.width()), fewest_columns, most_columns);
  chart.utf8 = display.utf8;
  return chart;
}

/// Calls take(row) with every row of a file, as far as it is whole; with none where there is none.
template <class Row, class Take>
void each_row_of(const std::string& path, const Take& take) {
  if (!std::filesystem::exists(path)) return;
  try {
    each_row<Row>(path, false, take);
  } catch (const Error&) {
    // The training has said what it could not write.
  }
}

}  // namespace

std::string learning_curves(const std::string& directory, const Display& display) {
  Stretches losses, top1;
  Ends loss_ends, top1_ends;
  each_row_of<StepMetrics>(directory + "/" + metrics_file, [&](const StepMetrics& row) {
    if (!row.loss) return;
    losses.add(static_cast<double>(row.step + 1), *row.loss);
    loss_ends.take(row.step + 1);
  });
  each_row_of<AccuracyRow>(directory + "/" + accuracy_file, [&](const AccuracyRow& row) {
    top1.add(static_cast<double>(row.step), 100.0 * row.top1);
    top1_ends.take(row.step);
  });
  std::string text;
  const Points loss = losses.points(), tests = top1.points();
  if (loss.size() > 1) text += text_chart(chart_for(display, "loss", loss_lines, loss_ends), loss);
  if (tests.size() > 1) {
    TextChart chart = chart_for(display, "top-1 of the test images", accuracy_lines, top1_ends);
    chart.unit = "%";
    text += text_chart(chart, tests);
  }
  return text;
}

void show_learning_curves(const std::string& directory, const Display& display) {
  if (!display.rewrites()) return;
  std::fflush(stdout);
  std::fputs(learning_curves(directory, display).c_str(), stderr);
}

}  // namespace duplex::tools
