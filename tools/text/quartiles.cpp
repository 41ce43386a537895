#include "tools/text/quartiles.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace duplex::tools {
namespace {

struct Unit {
  double seconds;
  const char* name;
};

Unit unit_for(double seconds) {
  if (seconds >= 1.0) return {1.0, "s"};
  if (seconds >= 1e-3) return {1e-3, "ms"};
  return {1e-6, "us"};
}

std::string number(double value) {
  char text[32];
  const int decimals = value >= 1000.0 ? 0 : value >= 100.0 ? 1 : value >= 10.0 ? 2 : 3;
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

}  // namespace

Quartiles quartiles_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const auto quantile = [&](double q) {
    const double position = q * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::size_t>(position);
    const std::size_t above = std::min(below + 1, values.size() - 1);
    const double part = position - std::floor(position);
    return values[below] + part * (values[above] - values[below]);
  };
  return {quantile(0.5), quantile(0.25), quantile(0.75), values.size()};
}

std::string duration_text(double seconds) {
  const Unit unit = unit_for(seconds);
  return number(seconds / unit.seconds) + " " + unit.name;
}

std::string clock_text(double seconds) {
  const auto total = static_cast<long>(seconds);
  char text[32];
  if (total >= 3600) {
    std::snprintf(text, sizeof text, "%ld:%02ld:%02ld", total / 3600, total / 60 % 60, total % 60);
  } else {
    std::snprintf(text, sizeof text, "%ld:%02ld", total / 60, total % 60);
  }
  return text;
}

std::string quartiles_text(const Quartiles& quartiles) {
  const Unit unit = unit_for(quartiles.median);
  return number(quartiles.median / unit.seconds) + " " + unit.name + " (" +
         number(quartiles.low / unit.seconds) + "-" + number(quartiles.high / unit.seconds) + ")";
}

}  // namespace duplex::tools
