// Reads the tables of net/PROTOCOL.md, which tests compare with the code.
#pragma once
#include <gtest/gtest.h>

#include <cstddef>
#include <fstream>
#include <string>
#include <vector>

namespace duplex::net {

/// Returns the rows of the tables under a heading, split at the bars, without the first header.
inline std::vector<std::vector<std::string>> table_of(const std::string& heading) {
  std::ifstream page("net/PROTOCOL.md");
  EXPECT_TRUE(page) << "net/PROTOCOL.md: the tests are to be run from the root of the tree";
  std::vector<std::vector<std::string>> rows;
  std::string line;
  while (std::getline(page, line) && line != "## " + heading) {
  }
  while (std::getline(page, line) && line.rfind("## ", 0) != 0) {
    if (line.rfind("| ", 0) != 0) continue;
    std::vector<std::string> cells;
    std::size_t from = 1;
    for (std::size_t bar = line.find('|', 1); bar != std::string::npos;
         bar = line.find('|', from)) {
      std::string cell = line.substr(from, bar - from);
      cell.erase(0, cell.find_first_not_of(' '));
      cell.erase(cell.find_last_not_of(' ') + 1);
      cells.push_back(cell);
      from = bar + 1;
    }
    rows.push_back(cells);
  }
  if (!rows.empty()) rows.erase(rows.begin());  // The header row.
  return rows;
}

}  // namespace duplex::net
