#include "tools/text/size.h"

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/error.h"
#include "tools/text/table.h"

namespace duplex::tools {
namespace {

/// The bytes of a unit; 0: it is none.
double unit_of(std::string_view text) {
  if (text.empty() || text == "B") return 1.0;
  const std::size_t power = std::string_view("kMGT").find(text[0] == 'K' ? 'k' : text[0]);
  if (power == std::string_view::npos) return 0.0;
  const std::string_view rest = text.substr(1);
  const double base = rest == "i" || rest == "iB" ? 1024.0 : 1000.0;
  if (base == 1000.0 && !rest.empty() && rest != "B") return 0.0;
  return std::pow(base, static_cast<double>(power + 1));
}

}  // namespace

std::size_t parse_size(const std::string& text) {
  constexpr double most = 1e18;
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  while (*end == ' ') ++end;
  const double bytes = number * unit_of(end);
  if (end == text.c_str() || !(bytes >= 1.0 && bytes <= most))
    throw Error("'" + text + "' is no size of memory; write 8GiB or 512MiB", Exit::usage);
  return static_cast<std::size_t>(bytes);
}

std::string mebibytes(std::size_t bytes) {
  const auto tenths =
      static_cast<std::int64_t>(std::llround(static_cast<double>(bytes) / 104857.6));
  return grouped(tenths / 10) + "." + std::to_string(tenths % 10);
}

}  // namespace duplex::tools
