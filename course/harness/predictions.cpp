#include "course/harness/predictions.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "core/error.h"

namespace duplex::course {
namespace {

std::string trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

std::optional<double> number_of(const std::string& text, const std::string& where) {
  if (text == "?") return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !std::isfinite(value))
    throw Error(
        where + ": \"" + text.substr(0, 40) +
        "\" is no number; write one, such as 0.25 or 1.2e9, or ? if you do not know it yet");
  return value;
}

}  // namespace

std::map<std::string, std::optional<double>> read_predictions(
    const std::string& path, const std::vector<std::string>& names) {
  std::ifstream file(path);
  if (!file) throw Error(path + " cannot be read; git checkout " + path + " brings it back");
  std::map<std::string, std::optional<double>> found;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    line = trimmed(line);
    if (line.empty() || line[0] == '#') continue;
    const std::string where = path + ", line " + std::to_string(number);
    const std::size_t equals = line.find('=');
    if (equals == std::string::npos) throw Error(where + ": expected name = number");
    const std::string name = trimmed(line.substr(0, equals));
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw Error(where + ": there is no figure \"" + name.substr(0, 40) + "\" to predict here");
    if (found.count(name) != 0) throw Error(where + ": " + name + " is there twice");
    found[name] = number_of(trimmed(line.substr(equals + 1)), where);
  }
  for (const std::string& name : names)
    if (found.count(name) == 0)
      throw Error(path + ": " + name + " is missing; add a line: " + name + " = ?");
  return found;
}

}  // namespace duplex::course
