// Cells: text between separators.
#pragma once
#include <string>
#include <vector>

namespace duplex::tools {

/// Splits text: "a,,b" gives "a", "", "b". An empty text gives one empty cell.
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
