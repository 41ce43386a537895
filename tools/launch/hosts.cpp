#include "tools/launch/hosts.h"

#include <filesystem>

#include "core/error.h"
#include "core/program_path.h"
#include "net/wire/listener.h"

namespace duplex::tools {
namespace {

std::string shell_word(const std::string& text) {
  const bool plain = !text.empty() && text.find_first_not_of(
                                          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                          "0123456789_-+=./:,@%") == std::string::npos;
  if (plain) return text;
  // csh, which is a login shell at some places, reads "!" even between quotes as its own.
  std::string result = "'";
  for (const char letter : text)
    result += letter == '\'' || letter == '!' ? std::string("'\\") + letter + "'"
                                              : std::string(1, letter);
  return result + "'";
}

}  // namespace

std::string joined(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + shell_word(word);
  return line;
}

std::string own_path() {
  std::string path = program_path();
  if (path.empty())
    throw Error("launch: this program's own path is not known: /proc cannot be read; mount it");
  return path;
}

bool is_here(const std::string& host) {
  try {
    net::Listener::open({host, 0});  // A machine can listen only on its own addresses.
    return true;
  } catch (const Error&) {
    return false;
  }
}

Place same_place() {
  return {own_path(), std::filesystem::current_path().string()};
}

std::vector<std::string> ssh_command(const std::string& ssh, const std::string& host,
                                     const std::string& script, const std::string& folder) {
  return {ssh, "-o", "BatchMode=yes", host,
          "sh -c " + shell_word("cd " + shell_word(folder) + " && " + script)};
}

std::vector<std::string> command_on(const std::string& host, const std::string& ssh,
                                    std::vector<std::string> words, const Place& place) {
  words.insert(words.begin(), place.program);
  if (is_here(host)) return words;
  return ssh_command(ssh, host,
                     "exec 3<&0 && { (cat <&3; kill $$) > /dev/null 2>&1 & exec " + joined(words) +
                         " 3<&- < /dev/null; }",
                     place.folder);
}

}  // namespace duplex::tools
