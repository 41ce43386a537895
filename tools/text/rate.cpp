#include "tools/text/rate.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "core/error.h"

namespace duplex::tools {
namespace {

struct Unit {
  const char* name;
  double bytes;
};

constexpr std::array<Unit, 15> units{{{"bit", 0.125},
                                      {"kbit", 125.0},
                                      {"Mbit", 125e3},
                                      {"Gbit", 125e6},
                                      {"bps", 0.125},
                                      {"kbps", 125.0},
                                      {"Mbps", 125e3},
                                      {"Gbps", 125e6},
                                      {"kb", 125.0},
                                      {"Mb", 125e3},
                                      {"Gb", 125e6},
                                      {"B", 1.0},
                                      {"kB", 1e3},
                                      {"MB", 1e6},
                                      {"GB", 1e9}}};

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

}  // namespace

double parse_rate(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  std::string unit(end);
  unit.erase(0, unit.find_first_not_of(' '));
  if (unit.size() > 2 && unit.compare(unit.size() - 2, 2, "/s") == 0) unit.resize(unit.size() - 2);
  // Without capitals, as tc and people write them, only bits are certain: mb could be either.
  for (const Unit& known : units)
    if (unit == lower(known.name) &&
        (unit.find("bit") != std::string::npos || unit.find("bps") != std::string::npos))
      unit = known.name;
  for (const Unit& known : units) {
    if (end != text.c_str() && unit == known.name && std::isfinite(number) && number > 0.0)
      return number * known.bytes;
  }
  throw Error("rate: '" + text + "' is not one like 1Gbit/s, 100Mbit/s or 12.5MB/s", Exit::usage);
}

std::string rate_text(double bytes_per_second) {
  double number = bytes_per_second * 8.0;
  const char* prefix = "";
  for (const char* next : {"k", "M", "G"}) {
    if (number < 1000.0) break;
    number /= 1000.0;
    prefix = next;
  }
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.4g %sbit/s", number, prefix);
  return text.data();
}

}  // namespace duplex::tools
