// Text between separators.
#pragma once
#include <string>
#include <vector>

namespace duplex::tools {

/// "a,,b" -> "a", "", "b". Of an empty text: one, empty.
inline std::vector<std::string> cells_of(const std::string& text, char separator) {
  std::vector<std::string> cells{""};
  for (const char c : text) {
    if (c == separator)
      cells.emplace_back();
    else
      cells.back() += c;
  }
  return cells;
}

}  // namespace duplex::tools
