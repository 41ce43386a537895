// The line that launch rewrites below the lines of its ranks.
#pragma once
#include <cstdio>
#include <string>

#include "tools/display/display.h"

namespace duplex::tools {

class StatusLine {
 public:
  StatusLine() = default;
  ~StatusLine() { clear(); }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  /// Writes a line to standard output or standard error, above the one that is rewritten.
  void line(std::FILE* to, const std::string& text);
  /// Rewrites the line. It is ASCII; where there is no terminal it is not shown.
  void show(const std::string& text);
  /// Leaves the line where it is, as one of many.
  void keep();
  void clear();

 private:
  void draw() const;
  const Display display_ = Display::here();
  std::string shown_;
};

/// A piece of what a rank writes.
struct Piece {
  enum class Kind { line, rewritten };
  Kind kind = Kind::line;
  std::string text;  ///< It has neither what begins nor what ends it.
};
/// Takes the next piece away from the front of `text`. Returns false where none is whole yet.
bool take_piece(std::string& text, Piece& piece);

}  // namespace duplex::tools
