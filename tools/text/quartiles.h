// Median and quartiles, as which every measured figure is told.
#pragma once
#include <string>
#include <vector>

namespace duplex::tools {

struct Quartiles {
  double median = 0.0;
  double low = 0.0, high = 0.0;  ///< The quartiles.
  std::size_t count = 0;
};

/// Interpolates linearly between order statistics. All are zero if there are no values.
Quartiles quartiles_of(std::vector<double> values);

/// "12.30 ms", "1.204 s", "87.00 us".
std::string duration_text(double seconds);
/// "1:05", "2:03:09".
std::string clock_text(double seconds);
/// "12.30 ms (12.10-12.90)".
std::string quartiles_text(const Quartiles& quartiles);

}  // namespace duplex::tools
