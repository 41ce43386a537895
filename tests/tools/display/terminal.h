// Runs bin/duplex on a pseudo-terminal, and shows what a terminal would.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "tests/tools/program.h"

namespace duplex::tools::testing {

/// A terminal that knows what duplex writes: text, line ends, \r, and the sequences that erase the
/// rest of a line (ESC [ K).
class Screen {
 public:
  void feed(const std::string& bytes);

  const std::vector<std::string>& lines() const { return lines_; }
  /// All texts that ever began a line anew, over what was there.
  const std::vector<std::string>& rewritten() const { return rewritten_; }

 private:
  bool over_ = false;  ///< \r has come, and no end of that line yet.
  std::vector<std::string> lines_{""};
  std::vector<std::string> rewritten_;
};

/// The columns of a UTF-8 text without wide characters.
std::size_t columns_of(const std::string& text);

struct TerminalRun {
  int exit = -1;
  std::string bytes;  ///< All that the terminal got.
};

/// Runs the program, all of whose output goes to a terminal with so many columns, until it ends.
/// `locale` is LC_ALL.
TerminalRun run_on_terminal(const std::vector<std::string>& arguments, std::size_t columns,
                            const std::string& locale = "C");

}  // namespace duplex::tools::testing
