#include "tools/launch/words.h"

namespace duplex::tools {

std::string value_of(const std::vector<std::string>& words, const std::string& flag) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == flag && i + 1 < words.size()) return words[i + 1];
    if (words[i].rfind(flag + "=", 0) == 0) return words[i].substr(flag.size() + 1);
  }
  return "";
}

void replace_value(std::vector<std::string>& words, const std::string& flag,
                   const std::string& value) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == flag && i + 1 < words.size()) words[++i] = value;
    if (words[i].rfind(flag + "=", 0) == 0) words[i] = flag + "=" + value;
  }
}

void remove_flag(std::vector<std::string>& words, const std::string& flag) {
  for (auto word = words.begin(); word != words.end();)
    if (*word == flag && word + 1 != words.end())
      word = words.erase(word, word + 2);
    else if (word->rfind(flag + "=", 0) == 0)
      word = words.erase(word);
    else
      ++word;
}

}  // namespace duplex::tools
