// Reads the small files by which Linux tells of a machine. The folders /proc and /sys are found
// below a root, which a test puts in the place of "".
#pragma once
#include <cstdint>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

namespace duplex::tools {

/// The whole text; empty if it cannot be read.
inline std::string text_in(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The first word; empty if there is none.
inline std::string word_in(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

/// The number that a file begins with; none where it begins with something else, as with "max".
inline std::optional<std::int64_t> number_in(const std::string& path) {
  std::ifstream file(path);
  std::int64_t number = 0;
  if (file >> number) return number;
  return std::nullopt;
}

/// Returns what stands behind "NAME:" in the first line that begins so, without spaces around it.
inline std::string value_in(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(':');
    if (colon == std::string::npos || line.rfind(name, 0) != 0) continue;
    if (line.find_last_not_of(" \t", colon - 1) + 1 != name.size()) continue;
    const auto from = line.find_first_not_of(" \t", colon + 1);
    if (from == std::string::npos) return "";
    return line.substr(from, line.find_last_not_of(" \t\r") - from + 1);
  }
  return "";
}

}  // namespace duplex::tools
