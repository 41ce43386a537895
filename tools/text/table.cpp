#include "tools/text/table.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>

namespace duplex::tools {

std::string Table::str() const {
  std::vector<std::size_t> widths;
  for (std::size_t column = 0; column < columns_.size(); ++column) {
    std::size_t width = columns_[column].first.size();
    for (const auto& row : rows_) {
      if (column < row.size()) width = std::max(width, row[column].size());
    }
    widths.push_back(width);
  }
  std::string text;
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string out;
    for (std::size_t column = 0; column < columns_.size(); ++column) {
      const std::string cell = column < cells.size() ? cells[column] : "";
      const std::string space(widths[column] - cell.size(), ' ');
      if (column > 0) out += "  ";
      out += columns_[column].second == Align::left ? cell + space : space + cell;
    }
    out.erase(out.find_last_not_of(' ') + 1);
    text += out + '\n';
  };
  std::vector<std::string> rule;
  for (std::size_t width : widths) rule.emplace_back(width, '-');
  std::vector<std::string> names;
  for (const auto& column : columns_) names.push_back(column.first);
  line(names);
  line(rule);
  for (const auto& row : rows_) line(row.empty() ? rule : row);
  return text;
}

std::string fixed(double value, int decimals) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.*f", decimals, value);
  return buffer;
}

std::string grouped(std::int64_t value) {
  std::string digits = std::to_string(value);
  for (std::size_t end = digits.size(); end > 3 + (value < 0 ? 1U : 0U); end -= 3) {
    digits.insert(end - 3, ",");
    if (end - 3 <= (value < 0 ? 1U : 0U)) break;
  }
  return digits;
}

}  // namespace duplex::tools
