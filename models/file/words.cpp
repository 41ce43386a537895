#include "models/file/words.h"

#include <algorithm>
#include <cmath>
#include <locale>
#include <sstream>

namespace duplex::models::file {
namespace {

bool parts_words(char letter) {
  return letter == ' ' || letter == '\t' || letter == ',' || letter == '\r';
}

/// Makes a text fit for one line of an error: not too long, and of printable letters alone.
std::string shown(const std::string& text) {
  constexpr std::size_t longest = 40;
  std::string result = text.substr(0, longest);
  for (char& letter : result)
    if (letter < ' ' || letter > '~') letter = '?';
  return text.size() > longest ? result + "..." : result;
}

/// Returns how many bytes the character of UTF-8 at `at` has; 0: there is none, or one that would
/// steer a terminal. A carriage return is part of a line's end alone.
std::size_t character(const std::string& text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(at);
  if (first == '\r') return at + 1 == text.size() ? 1 : 0;
  if (first < 0x80) return (first >= ' ' && first != 0x7f) || first == '\t' ? 1 : 0;
  const std::size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || at + bytes > text.size()) return 0;
  for (std::size_t i = 1; i < bytes; ++i)
    if ((byte(at + i) & 0xc0) != 0x80) return 0;
  const unsigned second = byte(at + 1);
  const bool wrong = (first == 0xc2 && second < 0xa0) || (first == 0xe0 && second < 0xa0) ||
                     (first == 0xed && second > 0x9f) || (first == 0xf0 && second < 0x90) ||
                     (first == 0xf4 && second > 0x8f);
  return wrong ? 0 : bytes;
}

/// The rest of a line without the spaces around it and without a comment.
std::string title_in(const std::string& line, std::size_t from) {
  std::string title = line.substr(from, line.find('#', from) - from);
  while (!title.empty() && parts_words(title.back())) title.pop_back();
  return title;
}

Line words_of(const std::string& text, int number) {
  Line line;
  const auto place = [&](std::size_t at) { return static_cast<int>(at) + 1; };
  std::size_t at = 0;
  while (at < text.size() && text[at] != '#') {
    if (parts_words(text[at])) {
      ++at;
      continue;
    }
    const bool titled = line.words.size() == 1 && line.words[0].text == "network";
    std::size_t end = at + 1;
    if (text[at] != '=')
      while (end < text.size() && !parts_words(text[end]) && text[end] != '#' && text[end] != '=')
        ++end;
    line.words.push_back(
        {titled ? title_in(text, at) : text.substr(at, end - at), number, place(at)});
    at = titled ? at + line.words.back().text.size() : end;
    if (titled) break;
  }
  if (!line.words.empty()) line.words.push_back({"", number, place(at)});
  return line;
}

}  // namespace

Error error_at(const std::string& path, const Word& word, const std::string& what) {
  return Error(
      path + ":" + std::to_string(word.line) + ":" + std::to_string(word.column) + ": " + what,
      Exit::usage);
}

std::vector<Line> lines_of(const std::string& text, const std::string& path) {
  if (text.size() > most_bytes)
    throw Error(path + ": is longer than a network's file may be, " + std::to_string(most_bytes) +
                    " bytes; repeat makes many like layers short",
                Exit::usage);
  std::vector<Line> lines;
  std::size_t begin = 0;
  for (int number = 1; begin < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    for (std::size_t i = 0, bytes = 0; i < line.size(); i += bytes) {
      bytes = character(line, i);
      if (bytes == 0)
        throw error_at(path, {"", number, static_cast<int>(i) + 1},
                       "there is a byte that no text has; a network's file is text in UTF-8");
    }
    Line words = words_of(line, number);
    if (!words.words.empty()) lines.push_back(std::move(words));
    begin = end + 1;
  }
  return lines;
}

std::int64_t whole_number(const std::string& text) {
  constexpr std::size_t longest = 15;
  if (text.empty() || text.size() > longest) return -1;
  std::int64_t value = 0;
  for (const char letter : text) {
    if (letter < '0' || letter > '9') return -1;
    value = 10 * value + (letter - '0');
  }
  return value;
}

double decimal_number(const std::string& text) {
  constexpr std::size_t longest = 32;
  if (text.size() > longest || text.find_first_not_of("0123456789.e-+") != std::string::npos)
    return -1.0;
  std::istringstream stream(text);
  stream.imbue(std::locale::classic());
  double value = 0.0;
  if (!(stream >> value) || !stream.eof() || !std::isfinite(value)) return -1.0;
  return value;
}

const Word& Cursor::pass() {
  const Word& word = words_[next_];
  if (!at_end()) ++next_;
  return word;
}

bool Cursor::take(const std::string& first, const std::string& second) {
  if (at_end() || word().text != first) return false;
  if (!second.empty() && words_[next_ + 1].text != second) return false;
  next_ += second.empty() ? 1 : 2;
  return true;
}

std::int64_t Cursor::number(std::int64_t least, std::int64_t most, const std::string& what) {
  const std::int64_t value = whole_number(word().text);
  if (value < least || value > most)
    expected(what + ", a number from " + std::to_string(least) + " to " + std::to_string(most));
  pass();
  return value;
}

float Cursor::decimal(const std::string& what) {
  const double value = decimal_number(word().text);
  if (!(value >= 0.0 && value <= 1e6)) expected(what + ", a number such as 0.75");
  pass();
  return static_cast<float>(value);
}

void Cursor::finish(const std::string& what) const {
  if (!at_end()) expected(what);
}

void Cursor::expected(const std::string& what) const {
  throw error_at(path_, word(),
                 "expected " + what +
                     (at_end() ? ", but the line ends" : ", not '" + shown(word().text) + "'"));
}

}  // namespace duplex::models::file
