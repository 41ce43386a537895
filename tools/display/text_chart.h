// Line charts of characters: Braille, whose cells have two dots by four, or ASCII, whose characters
// stand for three heights.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace duplex::tools {

/// Points with finite coordinates, x ascending.
using Points = std::vector<std::pair<double, double>>;

struct TextChart {
  std::string title;
  std::uint64_t from = 0, to = 0;  ///< The numbers at the ends of the lower edge.
  std::string x;                   ///< The last number of the lower edge counts them: "steps".
  std::string unit;                ///< Behind the numbers of the left edge.
  std::size_t lines = 12;          ///< All of them; 5 at least.
  std::size_t columns = 79;        ///< No line is longer; 40 at least.
  bool utf8 = false;               ///< Braille.
};

/// Returns the lines. Where a column has several points, it shows their mean; between points the
/// line is straight. A few columns far above all others, as the first losses are, go beyond the
/// upper edge, whose number then says ">". "" without a point.
std::string text_chart(const TextChart& chart, const Points& points);

/// Takes any number of points in, and gives the means of so many stretches at most, in bounded
/// memory.
class Stretches {
 public:
  explicit Stretches(std::size_t most = 1024) : most_(most) {}
  /// x ascends; a point that is not finite is left out.
  void add(double x, double y);
  /// The points, the last of which may be of a shorter stretch.
  Points points() const;

 private:
  struct Stretch {
    double x = 0.0, y = 0.0;  ///< Sums.
    std::uint64_t count = 0;
  };
  std::size_t most_;
  std::uint64_t length_ = 1;  ///< Points of a whole stretch.
  std::vector<Stretch> stretches_;
};

}  // namespace duplex::tools
