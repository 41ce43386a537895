// Charts by gnuplot: into a file, into a window, or as text if there is no display.
#pragma once
#include <string>
#include <vector>

namespace duplex::tools {

struct Curve {
  std::string name;
  std::vector<double> values;  ///< Values at x = 1, 2, ...
  bool dashed = false;
};

struct Chart {
  std::string title, x, y;
  std::vector<Curve> curves;
};

/// `file` is a .png or .svg; empty: a window if there is a display, otherwise text on standard
/// output, as wide as the terminal. Throws Error for another ending, without gnuplot, and if
/// gnuplot failed.
void plot(const Chart& chart, const std::string& file);

}  // namespace duplex::tools
