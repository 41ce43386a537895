// Charts by gnuplot: into a file, a window, or as text where there is no display.
#pragma once
#include <string>
#include <vector>

namespace duplex::tools {

struct Curve {
  std::string name;
  std::vector<double> values;  ///< At x = 1, 2, ...
  bool dashed = false;
};

struct Chart {
  std::string title, x, y;
  std::vector<Curve> curves;
};

/// `file`: .png or .svg; empty: a window where there is a display, else text on standard output, as
/// wide as the terminal. Throws Error: another ending, no gnuplot, or gnuplot failed.
void plot(const Chart& chart, const std::string& file);

}  // namespace duplex::tools
