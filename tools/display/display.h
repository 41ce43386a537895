// Says where progress is shown: rewritten on a terminal, in plain lines, or nowhere.
#pragma once
#include <cstddef>
#include <string>

namespace duplex::tools {

struct Display {
  enum class Kind {
    none,      ///< --quiet.
    lines,     ///< Standard error is no terminal.
    terminal,  ///< Standard error is one.
    launched   ///< Standard error is a pipe to launch, which passes it on to a terminal.
  };
  Kind kind = Kind::lines;
  std::size_t columns = 80;  ///< Those of launch's terminal; one's own is asked each time.
  bool utf8 = false;         ///< It shows more than ASCII.

  /// Returns the display that standard error is.
  static Display here();
  /// Returns the display that launch says its ranks have, of a word() of its own. Throws
  /// Error(Exit::usage) for another text.
  static Display launched(const std::string& word);
  static Display quiet() { return {Kind::none, 80, false}; }

  /// Returns what launch tells its ranks of this display: "lines", "80" or "80,utf-8".
  std::string word() const;
  bool rewrites() const { return kind == Kind::terminal || kind == Kind::launched; }
  /// Returns how many columns a line may have that is rewritten: one less than there are, since a
  /// terminal begins a new line behind the last.
  std::size_t width() const;
};

/// Sends standard output nowhere from now on: with --quiet, standard error has what is wrong.
/// Throws Error if that fails.
void silence_standard_output();

}  // namespace duplex::tools
