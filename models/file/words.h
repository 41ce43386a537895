// Cuts the text of a network's file into lines of words that know their places, so that every
// complaint can name line and column.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/error.h"

namespace duplex::models::file {

/// The most that a file may ask for. Sizes stay so small that no product of them overflows.
constexpr std::size_t most_bytes = std::size_t{96} << 10;  ///< A command line carries the text.
constexpr std::size_t most_layers = 4096;
constexpr std::size_t most_inputs = 256;  ///< A layer reads no more.
constexpr int most_nested = 8;
constexpr std::int64_t largest_number = 1 << 20;   ///< Filters, outputs, channels, classes.
constexpr std::int64_t largest_window = 4096;      ///< Window, stride, padding, input.
constexpr double most_values = 2147483648.0;       ///< 2^31 in a layer's output for a sample.
constexpr double most_parameters = 68719476736.0;  ///< A network has at most 2^36.
constexpr double most_macs = 9007199254740992.0;   ///< A network takes at most 2^53 for a sample.

struct Word {
  std::string text;
  int line = 0, column = 0;  ///< Both from 1; columns count bytes.
};

/// A line that has words. The last one of `words` is its end, which has no text.
struct Line {
  std::vector<Word> words;
};

/// An error at a place of a file: "net.txt:12:8: ...".
Error error_at(const std::string& path, const Word& word, const std::string& what);

/// Cuts a text into lines of words. Spaces, tabs and commas part words, '=' is a word of its own,
/// and '#' begins a comment. A line that begins with `network` has one more word, all the rest of
/// it. Throws Error(Exit::usage) where the text is too long or has bytes that no text has.
std::vector<Line> lines_of(const std::string& text, const std::string& path);

/// Goes through the words of a line.
class Cursor {
 public:
  Cursor(const std::string& path, const std::vector<Word>& words) : path_(path), words_(words) {}

  bool at_end() const { return next_ + 1 == words_.size(); }
  const Word& word() const { return words_[next_]; }
  /// Returns the next word and passes it.
  const Word& pass();
  /// Passes these words, one behind another, if they come next. Returns whether they did.
  bool take(const std::string& first, const std::string& second = "");
  /// Passes a number from `least` to `most`, or throws. `what` says what was expected.
  std::int64_t number(std::int64_t least, std::int64_t most, const std::string& what);
  /// Passes a decimal number from 0 to 1e6, or throws.
  float decimal(const std::string& what);
  /// Throws unless the line ends here.
  void finish(const std::string& what) const;
  /// Throws: something else was expected here.
  [[noreturn]] void expected(const std::string& what) const;

 private:
  const std::string& path_;
  const std::vector<Word>& words_;
  std::size_t next_ = 0;
};

/// Reads digits alone. Returns -1 for anything else, and for more than 15 digits.
std::int64_t whole_number(const std::string& text);
/// Reads a decimal number, all of the text. Returns -1 for anything else.
double decimal_number(const std::string& text);

}  // namespace duplex::models::file
