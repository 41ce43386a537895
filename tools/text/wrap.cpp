#include "tools/text/wrap.h"

#include <sstream>

namespace duplex::tools {

std::string wrap(const std::string& text, std::size_t width) {
  std::istringstream lines(text);
  std::string wrapped;
  for (std::string line; std::getline(lines, line);) {
    while (line.size() > width) {
      std::size_t space = line.rfind(' ', width);
      if (space == std::string::npos) space = line.find(' ', width);
      if (space == std::string::npos) break;
      wrapped += line.substr(0, space) + '\n';
      line.erase(0, space + 1);
    }
    wrapped += line + '\n';
  }
  return wrapped;
}

}  // namespace duplex::tools
