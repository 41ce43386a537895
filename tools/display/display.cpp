#include "tools/display/display.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <cstdlib>

#include "core/error.h"

namespace duplex::tools {
namespace {

constexpr std::size_t usual_columns = 80, fewest_columns = 20, most_columns = 1000;
const std::string lines_word = "lines", utf8_word = ",utf-8";

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// Returns whether the locale's characters are in UTF-8, as POSIX finds its name.
bool locale_is_utf8() {
  std::string locale;
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"})
    if (locale.empty()) locale = variable(name);
  std::string letters;
  for (const char c : locale)
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return letters.find("utf8") != std::string::npos;
}

std::size_t terminal_columns() {
  winsize size{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : usual_columns;
}

}  // namespace

Display Display::here() {
  if (::isatty(STDERR_FILENO) == 0 || variable("TERM") == "dumb") return {};
  return {Kind::terminal, terminal_columns(), locale_is_utf8()};
}

Display Display::launched(const std::string& word) {
  if (word == lines_word) return {};
  Display display{Kind::launched, 0, false};
  const char* const end = word.data() + word.size();
  const auto [behind, error] = std::from_chars(word.data(), end, display.columns);
  const std::string rest(behind, end);
  display.utf8 = rest == utf8_word;
  if (error != std::errc() || !(rest.empty() || display.utf8) || display.columns > most_columns)
    throw Error("--launch-display '" + word + "' is given by launch alone", Exit::usage);
  return display;
}

std::string Display::word() const {
  if (!rewrites()) return lines_word;
  return std::to_string(std::min(most_columns, width() + 1)) + (utf8 ? utf8_word : "");
}

std::size_t Display::width() const {
  return std::max(fewest_columns, kind == Kind::terminal ? terminal_columns() : columns) - 1;
}

void silence_standard_output() {
  if (std::freopen("/dev/null", "w", stdout) == nullptr)
    throw Error("--quiet: /dev/null cannot be opened");
}

}  // namespace duplex::tools
