#include "tools/display/text_chart.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tools/text/table.h"

namespace duplex::tools {
namespace {

/// Dots in a grid of cells, which text() makes characters of.
class Dots {
 public:
  Dots(std::size_t columns, std::size_t rows, bool utf8)
      : across_(utf8 ? 2 : 1),
        down_(utf8 ? 4 : 3),
        columns_(columns),
        rows_(rows),
        set_(width() * height(), false) {}

  std::size_t width() const { return columns_ * across_; }
  std::size_t height() const { return rows_ * down_; }
  /// `y` counts from the top.
  void set(std::size_t x, std::size_t y) { set_[y * width() + x] = true; }

  std::string row(std::size_t row) const {
    std::string text;
    for (std::size_t column = 0; column < columns_; ++column)
      text += across_ == 2 ? braille(column, row) : ascii(column, row);
    return text;
  }

 private:
  bool at(std::size_t column, std::size_t row, std::size_t x, std::size_t y) const {
    return set_[(row * down_ + y) * width() + column * across_ + x];
  }
  /// Unicode numbers the dots of a cell from U+2800 on, the lowest two last.
  std::string braille(std::size_t column, std::size_t row) const {
    constexpr unsigned bits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    unsigned cell = 0;
    for (std::size_t y = 0; y < 4; ++y)
      for (std::size_t x = 0; x < 2; ++x) cell |= at(column, row, x, y) ? bits[y][x] : 0U;
    if (cell == 0) return " ";
    return {'\xe2', static_cast<char>(0xa0 | (cell >> 6)), static_cast<char>(0x80 | (cell & 0x3f))};
  }
  std::string ascii(std::size_t column, std::size_t row) const {
    unsigned cell = 0;  // Its bits are the dots, from the top.
    for (std::size_t y = 0; y < 3; ++y) cell |= at(column, row, 0, y) ? 1U << y : 0U;
    return std::string(1, " '-|.:||"[cell]);
  }

  std::size_t across_, down_, columns_, rows_;
  std::vector<bool> set_;
};

/// The height of the line in every column of dots, by the means of points and straight between.
std::vector<double> heights(const Points& points, std::size_t columns) {
  const double from = points.front().first, width = points.back().first - from;
  std::vector<double> sums(columns, 0.0);
  std::vector<std::size_t> counts(columns, 0);
  for (const auto& [x, y] : points) {
    const double part = width > 0.0 ? (x - from) / width : 0.0;
    const auto column =
        static_cast<std::size_t>(std::lround(part * static_cast<double>(columns - 1)));
    sums[column] += y;
    ++counts[column];
  }
  std::vector<double> result(columns, 0.0);
  std::size_t before = 0;  // The last column with a point; the first has one.
  for (std::size_t column = 0; column < columns; ++column) {
    if (counts[column] == 0) continue;
    result[column] = sums[column] / static_cast<double>(counts[column]);
    for (std::size_t between = before + 1; between < column; ++between)
      result[between] = result[before] + (result[column] - result[before]) *
                                             static_cast<double>(between - before) /
                                             static_cast<double>(column - before);
    before = column;
  }
  result.resize(before + 1);  // A single point has one column.
  return result;
}

/// The height of the upper edge: the greatest, unless that is half as far again from the lowest as
/// all but a few columns reach.
double upper_edge(std::vector<double> line, double lowest, double highest) {
  constexpr double most = 0.97, farther = 1.5;
  const auto at =
      line.begin() + static_cast<std::ptrdiff_t>(most * static_cast<double>(line.size() - 1));
  std::nth_element(line.begin(), at, line.end());
  return *at > lowest && highest - lowest > farther * (*at - lowest) ? *at : highest;
}

/// Draws the line, upright where it is steep.
void draw(Dots& dots, const std::vector<double>& line, double low, double high) {
  const auto row = [&](double y) {
    const double part = std::max(0.0, (high - y) / (high - low));
    return static_cast<std::size_t>(std::lround(part * static_cast<double>(dots.height() - 1)));
  };
  std::size_t before = row(line.front());
  for (std::size_t x = 0; x < line.size(); ++x) {
    const std::size_t here = row(line[x]);
    // From the neighbour of the last dot on, so that the line is thin.
    std::size_t from = here;
    if (here > before + 1) from = before + 1;
    if (here + 1 < before) from = before - 1;
    for (std::size_t y = std::min(from, here); y <= std::max(from, here); ++y) dots.set(x, y);
    before = here;
  }
}

/// Four digits are enough to tell heights apart.
std::string number(double value, const std::string& unit) {
  char text[40];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text + unit;
}

std::string right(const std::string& text, std::size_t width) {
  return std::string(width - std::min(width, text.size()), ' ') + text;
}

}  // namespace

std::string text_chart(const TextChart& chart, const Points& points) {
  if (points.empty()) return "";
  const std::size_t rows = chart.lines - 3;  // Beside title, lower edge and its numbers.
  constexpr std::size_t margin = 10, before_edge = margin - 1;
  Dots dots(chart.columns - margin - 1, rows, chart.utf8);
  const std::vector<double> line = heights(points, dots.width());
  double low = *std::min_element(line.begin(), line.end());
  const double highest = *std::max_element(line.begin(), line.end());
  double high = upper_edge(line, low, highest);
  const bool beyond = high < highest;
  if (!(high > low)) {
    const double room = std::max(1e-3, 0.1 * std::abs(low));
    low -= room;
    high += room;
  }
  draw(dots, line, low, high);
  std::string text = chart.title + "\n";
  for (std::size_t row = 0; row < rows; ++row) {
    std::string label;
    if (row == 0) label = (beyond ? ">" : "") + number(high, chart.unit);
    if (row == rows / 2) label = number(0.5 * (high + low), chart.unit);
    if (row + 1 == rows) label = number(low, chart.unit);
    text += right(label, before_edge) + (label.empty() ? " |" : " +") + dots.row(row);
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  }
  const std::size_t across = chart.columns - margin - 1;
  text += std::string(margin, ' ') + '+' + std::string(across, '-') + '\n';
  const std::string first = grouped(static_cast<std::int64_t>(chart.from));
  const std::string last = grouped(static_cast<std::int64_t>(chart.to)) + " " + chart.x;
  text += std::string(margin + 1, ' ') + first + right(last, across - first.size()) + '\n';
  return text;
}

void Stretches::add(double x, double y) {
  if (!std::isfinite(x) || !std::isfinite(y)) return;
  if (stretches_.empty() || stretches_.back().count == length_) {
    if (stretches_.size() == most_) {
      for (std::size_t i = 0; i < most_ / 2; ++i) {
        const Stretch &a = stretches_[2 * i], &b = stretches_[2 * i + 1];
        stretches_[i] = {a.x + b.x, a.y + b.y, a.count + b.count};
      }
      stretches_.resize(most_ / 2);
      length_ *= 2;
    }
    stretches_.push_back({});
  }
  Stretch& last = stretches_.back();
  last.x += x;
  last.y += y;
  ++last.count;
}

Points Stretches::points() const {
  Points points;
  for (const Stretch& stretch : stretches_) {
    const auto count = static_cast<double>(stretch.count);
    points.emplace_back(stretch.x / count, stretch.y / count);
  }
  return points;
}

}  // namespace duplex::tools
