#include "tools/report/chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>

#include "tools/report/page.h"

namespace duplex::tools::reports {
namespace {

// Letters are as wide as on a narrow screen, where they are set larger (page.cpp).
constexpr double width = 480, left = 54, right = 22, top = 32, bottom = 38, plot_height = 210;
constexpr double legend_line = 20, letter = 8.6;

std::string at(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f", value);
  return text.data();
}

std::string colour(int number) {
  return "var(--c" + std::to_string(number % 10) + ")";
}

std::string text(double x, double y, const std::string& content, const char* anchor = "start",
                 const char* type = "") {
  return "<text x=\"" + at(x) + "\" y=\"" + at(y) + "\" text-anchor=\"" + anchor + "\"" +
         (*type != '\0' ? std::string(" class=\"") + type + "\"" : "") + ">" + escape(content) +
         "</text>";
}

std::string line(double x1, double y1, double x2, double y2, const std::string& stroke,
                 const std::string& more = "") {
  return "<line x1=\"" + at(x1) + "\" y1=\"" + at(y1) + "\" x2=\"" + at(x2) + "\" y2=\"" + at(y2) +
         "\" stroke=\"" + stroke + "\"" + more + "/>";
}

const char* dashes(Series::Style style) {
  switch (style) {
    case Series::Style::dashed:
      return " stroke-dasharray=\"6 4\"";
    case Series::Style::dotted:
      return " stroke-dasharray=\"1.5 4\" stroke-linecap=\"round\"";
    default:
      return "";
  }
}

/// Fills an area so that lines on it and behind it are still seen.
std::string shade(int number) {
  return " fill=\"" + colour(number) + "\" fill-opacity=\"0.2\"";
}

/// One sign a colour, so that points are told apart without it.
std::string mark(int number, double x, double y) {
  const std::string fill = " fill=\"" + colour(number) + "\"";
  constexpr double r = 4;
  switch (number % 4) {
    case 0:
      return "<circle cx=\"" + at(x) + "\" cy=\"" + at(y) + "\" r=\"3.8\"" + fill + "/>";
    case 1:
      return "<path d=\"M" + at(x) + " " + at(y - r) + "l" + at(r) + " " + at(2 * r) + "h" +
             at(-2 * r) + "z\"" + fill + "/>";
    case 2:
      return "<rect x=\"" + at(x - 3.4) + "\" y=\"" + at(y - 3.4) +
             "\" width=\"6.8\" height=\"6.8\"" + fill + "/>";
    default:
      return "<path d=\"M" + at(x) + " " + at(y - 5) + "l5 5l-5 5l-5-5z\"" + fill + "/>";
  }
}

struct Axis {
  double low = 0.0, high = 1.0, from = 0.0, to = 1.0;  ///< Values, and where they lie.
  double position(double value) const { return from + (value - low) / (high - low) * (to - from); }
};

/// Returns the end of an axis that begins at `low`: `high`, or beyond, where values are too close
/// to each other to be told apart.
double end_of(double low, double high) {
  const double least = 1e-9 * std::max(std::abs(low), std::abs(high));
  return high - low > least ? high : low + std::max(1.0, least);
}

void widen(Axis& axis, const std::vector<double>& round) {
  if (round.empty()) return;
  axis.low = std::min(axis.low, round.front());
  axis.high = std::max(axis.high, round.back());
}

/// The name, shortened to fit a line of the legend.
std::string fitting(const std::string& name) {
  constexpr auto most = static_cast<std::size_t>((width - left - 27) / letter);
  if (name.size() <= most) return name;
  std::size_t end = most - 3;
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0) == 0x80) --end;  // UTF-8.
  return name.substr(0, end) + "...";
}

/// The names in lines as wide as the chart, and how high they are.
std::pair<std::string, double> legend(const std::vector<Series>& series, double y) {
  std::string drawn;
  double x = left;
  for (const Series& each : series) {
    if (each.name.empty()) continue;
    const std::string name = fitting(each.name);
    const double wide = 34 + letter * static_cast<double>(name.size());
    if (x > left && x + wide > width) {
      x = left;
      y += legend_line;
    }
    if (each.style == Series::Style::band)
      drawn += "<rect x=\"" + at(x) + "\" y=\"" + at(y - 10) + "\" width=\"22\" height=\"11\"" +
               shade(each.colour) + "/>";
    else if (each.style != Series::Style::marks)
      drawn += line(x, y - 4, x + 22, y - 4, colour(each.colour),
                    " stroke-width=\"2\"" + std::string(dashes(each.style)));
    else
      drawn += mark(each.colour, x + 11, y - 4);
    drawn += text(x + 27, y, name);
    x += wide + 8;
  }
  return {drawn, y};
}

std::string begin_svg(double height, const std::string& title, std::size_t drawn) {
  return "<svg class=\"chart\" role=\"img\" viewBox=\"0 0 " + at(width) + " " + at(height) +
         "\" aria-label=\"" + escape(title) + "\" data-drawn=\"" + std::to_string(drawn) + "\">" +
         text(0, 14, title);
}

}  // namespace

std::vector<double> ticks(double low, double high, int count) {
  high = end_of(low, high);
  const double rough = (high - low) / count, power = std::pow(10.0, std::floor(std::log10(rough)));
  double step = power;
  for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
    step = factor * power;
    if (step >= rough * (1 - 1e-9)) break;
  }
  std::vector<double> round;
  for (double i = std::floor(low / step + 1e-9); i * step < high + step * (1 - 1e-9); ++i)
    round.push_back(i * step);
  return round;
}

std::string number_text(double value) {
  std::array<char, 32> text{};
  const double size = std::abs(value);
  std::snprintf(text.data(), text.size(), size >= 1e4 && size < 99999.5 ? "%.0f" : "%.4g",
                size < 1e-12 ? 0.0 : value);
  return text.data();
}

std::string svg(const LineChart& chart) {
  double x_min = std::numeric_limits<double>::infinity(), x_max = -x_min, y_min = x_min,
         y_max = x_max;
  std::size_t points = 0;
  for (const Series& each : chart.series) {
    for (const auto* edge : {&each.points, &each.lower}) {
      for (const auto& [x, y] : *edge) {
        x_min = std::min(x_min, x);
        x_max = std::max(x_max, x);
        y_min = std::min(y_min, y);
        y_max = std::max(y_max, y);
        ++points;
      }
    }
  }
  if (points == 0)
    return begin_svg(50, chart.title, 0) + text(0, 36, "no data", "start", "faint") + "</svg>";
  if (chart.from_zero) y_min = std::min(y_min, 0.0);
  if (chart.x_from_zero) x_min = std::min(x_min, 0.0);
  if (chart.percent && y_max - y_min < 2.0) {
    const double middle = std::clamp((y_min + y_max) / 2, 1.0, 99.0);
    y_min = middle - 1.0;
    y_max = middle + 1.0;
  }

  Axis x{x_min, end_of(x_min, x_max), left, width - right};
  Axis y{y_min, end_of(y_min, y_max), top + plot_height, top};
  std::vector<double> x_ticks = ticks(x.low, x.high, 8);
  std::vector<double> y_ticks = ticks(y.low, y.high, 6);
  if (chart.percent)
    y_ticks.erase(std::remove_if(y_ticks.begin(), y_ticks.end(),
                                 [](double tick) { return tick < 0.0 || tick > 100.0 + 1e-9; }),
                  y_ticks.end());
  widen(y, y_ticks);
  if (chart.whole_x)
    x_ticks.erase(
        std::remove_if(x_ticks.begin(), x_ticks.end(),
                       [](double tick) { return std::abs(tick - std::round(tick)) > 1e-9; }),
        x_ticks.end());
  std::string drawn;
  for (const double tick : y_ticks) {
    drawn += line(left, y.position(tick), width - right, y.position(tick), "var(--line)");
    drawn += text(left - 6, y.position(tick) + 4, number_text(tick), "end", "faint");
  }
  for (const double tick : x_ticks) {
    if (tick < x.low - 1e-9 || tick > x.high + 1e-9) continue;
    drawn += line(x.position(tick), y.from, x.position(tick), y.from + 4, "var(--faint)");
    drawn += text(x.position(tick), y.from + 16, number_text(tick), "middle", "faint");
  }
  drawn += text((left + width - right) / 2, y.from + 32, chart.x, "middle", "faint");
  for (const Series& each : chart.series) {
    std::string path, marks;
    for (const auto& [px, py] : each.points) {
      path += (path.empty() ? "M" : "L") + at(x.position(px)) + " " + at(y.position(py));
      if (each.style == Series::Style::marks)
        marks += mark(each.colour, x.position(px), y.position(py));
    }
    if (each.style == Series::Style::band) {
      for (auto point = each.lower.rbegin(); point != each.lower.rend(); ++point)
        path += "L" + at(x.position(point->first)) + " " + at(y.position(point->second));
      if (!path.empty()) drawn += "<path d=\"" + path + "z\"" + shade(each.colour) + "/>";
      continue;
    }
    if (each.style != Series::Style::marks && !path.empty())
      drawn += "<path d=\"" + path + "\" fill=\"none\" stroke=\"" + colour(each.colour) +
               "\" stroke-width=\"2\"" + dashes(each.style) + "/>";
    drawn += marks;
  }
  const auto [names, lowest] = legend(chart.series, y.from + bottom + 14);
  const std::string title = chart.title + (chart.y.empty() ? "" : " (" + chart.y + ")");
  return begin_svg(lowest + 6, title, points) + drawn + names + "</svg>";
}

std::string svg(const BarChart& chart) {
  constexpr double row = 19, names = 190;
  double most = 0.0;
  for (const Bar& bar : chart.bars) {
    double sum = 0.0;
    for (const double part : bar.parts) sum += part;
    most = std::max(most, sum);
  }
  if (chart.bars.empty() || most <= 0.0)
    return begin_svg(50, chart.title, 0) + text(0, 36, "no data", "start", "faint") + "</svg>";
  double y = top + 4;
  const Axis x{0.0, most, names, width - 104};  // "0.001234 ms" has room behind it.
  std::string drawn;
  for (const Bar& bar : chart.bars) {
    double from = 0.0;
    drawn += text(names - 6, y + 11,
                  bar.name.size() > 27 ? bar.name.substr(0, 25) + ".." : bar.name, "end", "name");
    for (std::size_t part = 0; part < bar.parts.size(); ++part) {
      const double wide = std::max(x.position(bar.parts[part]) - names, 0.0);
      drawn += "<rect x=\"" + at(x.position(from)) + "\" y=\"" + at(y + 2) + "\" width=\"" +
               at(wide) + "\" height=\"11\" fill=\"" + colour(static_cast<int>(part)) + "\"/>";
      from += bar.parts[part];
    }
    drawn +=
        text(x.position(from) + 5, y + 11, number_text(from) + " " + chart.unit, "start", "faint");
    y += row;
  }
  std::vector<Series> parts;
  for (std::size_t part = 0; part < chart.parts.size(); ++part)
    parts.push_back({chart.parts[part], {}, Series::Style::line, static_cast<int>(part)});
  const auto [legends, lowest] = legend(parts, y + 16);
  return begin_svg(lowest + 6, chart.title, chart.bars.size()) + drawn + legends + "</svg>";
}

}  // namespace duplex::tools::reports
