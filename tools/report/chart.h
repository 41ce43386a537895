// Charts as SVG, in the page's colours.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace duplex::tools::reports {

struct Series {
  /// marks: points alone. band: the area between `points`, its upper edge, and `lower`.
  enum class Style { line, dashed, dotted, marks, band };
  std::string name;                               ///< In the legend, unless empty.
  std::vector<std::pair<double, double>> points;  ///< By x.
  Style style = Style::line;
  int colour = 0;                                  ///< 0 to 9.
  std::vector<std::pair<double, double>> lower{};  ///< Only of a band, at the x of `points`.
};

struct LineChart {
  std::string title, x, y;
  std::vector<Series> series;
  bool from_zero = true;  ///< Whether y begins at 0.
  /// Shares in percent: y spans two percent points at least, and never goes beyond 0 and 100.
  bool percent = false;
  bool x_from_zero = true;  ///< Whether x begins at 0, or at the first point.
  bool whole_x = false;     ///< x are whole numbers, each of which gets a tick where there is room.
};
/// A chart without a point says so.
std::string svg(const LineChart& chart);

struct Bar {
  std::string name;
  std::vector<double> parts;  ///< One beside the other; in the colours of `BarChart::parts`.
};
struct BarChart {
  std::string title, unit;
  std::vector<std::string> parts;
  std::vector<Bar> bars;
};
/// Horizontal bars.
std::string svg(const BarChart& chart);

/// At most about `count` round numbers that reach from `low` to `high`.
std::vector<double> ticks(double low, double high, int count);
/// Four digits, or five before the point: "0.1235", "12000", "1.2e+05".
std::string number_text(double value);

}  // namespace duplex::tools::reports
