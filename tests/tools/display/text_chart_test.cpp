// Tests charts of characters against some that were drawn by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>
#include <string>

#include "tests/tools/display/terminal.h"
#include "tools/display/text_chart.h"

namespace duplex::tools {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TextChart small(bool utf8, std::uint64_t from = 1, std::uint64_t to = 29) {
  TextChart chart;
  chart.title = "loss";
  chart.x = "steps";
  chart.from = from;
  chart.to = to;
  chart.lines = 6;
  chart.columns = 40;
  chart.utf8 = utf8;
  return chart;
}

/// Three rows of three heights each, and 29 columns: the line from 2 to 0 falls by one height in
/// three columns and a half, from the second column on.
TEST(TextChart, DrawsALineInAscii) {
  EXPECT_EQ(text_chart(small(false), {{1, 2.0}, {29, 0.0}}),
            "loss\n"
            "        2 +''----...\n"
            "        1 +         ''''---....\n"
            "        0 +                    '''----..\n"
            "          +-----------------------------\n"
            "           1                    29 steps\n");
}

/// A cell of Braille has two columns of four dots.
TEST(TextChart, DrawsALineInBraille) {
  const std::vector<std::string> lines = lines_of(text_chart(small(true), {{1, 2.0}, {58, 0.0}}));
  ASSERT_EQ(lines.size(), 6U);
  EXPECT_EQ(lines[1].substr(0, 14), "        2 +\u2809");     // Both of the uppermost dots.
  EXPECT_EQ(lines[3].substr(lines[3].size() - 3), "\u28c0");  // Both of the lowest.
  for (const std::string& line : lines) EXPECT_LE(testing::columns_of(line), 40U) << line;
}

/// Dots of a column are of the mean of its points; what is not finite is left out; a constant has a
/// height; a single point is one dot.
TEST(TextChart, TakesWhatARunMayLeave) {
  EXPECT_EQ(text_chart(small(false), {}), "");
  Stretches values;
  values.add(1, std::numeric_limits<double>::quiet_NaN());
  values.add(2, std::numeric_limits<double>::infinity());
  EXPECT_TRUE(values.points().empty());
  const std::string flat = text_chart(small(false), {{1, 5.0}, {2, 5.0}});
  EXPECT_NE(flat.find("        5 +-----------------------------\n"), std::string::npos) << flat;
  const std::string one = text_chart(small(false), {{7, 5.0}});
  EXPECT_NE(one.find("        5 +-\n"), std::string::npos) << one;
  const std::string steep = text_chart(small(false), {{0, 0.0}, {1, 1e30}, {2, -1e30}});
  for (const std::string& line : lines_of(steep)) EXPECT_LE(line.size(), 40U) << line;
  EXPECT_NE(steep.find("    1e+30 +"), std::string::npos) << steep;
}

/// The first losses may be far above all others.
TEST(TextChart, AFewColumnsMayGoBeyond) {
  Points points{{0, 100.0}};
  for (int i = 1; i < 29; ++i) points.emplace_back(i, i % 2);
  const std::string chart = text_chart(small(false), points);
  EXPECT_NE(chart.find("       >1 +"), std::string::npos) << chart;
  EXPECT_NE(chart.find("\n        0 +"), std::string::npos) << chart;
  points[2].second = points[4].second = 100.0;
  EXPECT_NE(text_chart(small(false), points).find("      100 +"), std::string::npos);
}

TEST(TextChart, HasTheLinesAndColumnsThatItIsGiven) {
  Stretches values;
  for (int i = 0; i < 100000; ++i) values.add(i, std::exp(-i / 20000.0) + 0.1 * (i % 7));
  const Points points = values.points();
  EXPECT_LE(points.size(), 1024U);
  for (const bool utf8 : {false, true}) {
    TextChart chart = small(utf8);
    chart.lines = 12;
    chart.columns = 79;
    const std::vector<std::string> lines = lines_of(text_chart(chart, points));
    EXPECT_EQ(lines.size(), 12U);
    std::size_t widest = 0;
    for (const std::string& line : lines) widest = std::max(widest, testing::columns_of(line));
    EXPECT_EQ(widest, 79U);
  }
}

/// Means of stretches have the mean of all values, whatever their number.
TEST(TextChart, StretchesKeepTheMean) {
  for (const int count : {1, 3, 4, 5, 8, 9, 31, 64, 1000}) {
    Stretches values(4);
    for (int i = 0; i < count; ++i) values.add(i, 2.0 * i);
    const Points points = values.points();
    ASSERT_LE(points.size(), 4U) << count;
    for (const auto& [x, y] : points) EXPECT_DOUBLE_EQ(y, 2.0 * x);
    for (std::size_t i = 1; i < points.size(); ++i) EXPECT_GT(points[i].first, points[i - 1].first);
    EXPECT_LE(points.back().first, count - 1);
  }
}

}  // namespace
}  // namespace duplex::tools
