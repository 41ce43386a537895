#include "core/list_text.h"

#include <algorithm>

namespace duplex {

std::string only_in(const std::string& text, const std::string& other) {
  const std::string separator = ", ", all = separator + other + separator;
  std::string result;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    const std::string item = text.substr(begin, end - begin);
    if (all.find(separator + item + separator) == std::string::npos)
      result += (result.empty() ? "" : separator) + item;
    begin = end + separator.size();
  }
  return result;
}

}  // namespace duplex
