// Tables as plain text: columns are as wide as their widest cell, and numbers stand to the right.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace duplex::tools {

class Table {
 public:
  enum class Align { left, right };

  explicit Table(std::vector<std::pair<std::string, Align>> columns)
      : columns_(std::move(columns)) {}

  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  void rule() { rows_.emplace_back(); }  ///< A line between rows.
  std::string str() const;

 private:
  std::vector<std::pair<std::string, Align>> columns_;
  std::vector<std::vector<std::string>> rows_;
};

std::string fixed(double value, int decimals);
/// 143667240 -> "143,667,240".
std::string grouped(std::int64_t value);

}  // namespace duplex::tools
