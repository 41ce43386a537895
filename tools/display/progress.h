// Progress: one line that is rewritten on a terminal, otherwise plain lines now and then.
#pragma once
#include <cstdint>
#include <string>

#include "tools/display/display.h"

namespace duplex::tools {

/// They begin and end a line that is rewritten: it begins where the one before began,
/// and the rest of that goes. launch knows by them which lines of its ranks are such.
inline constexpr const char *rewriting = "\r", *rewritten = "\x1b[K";

class Progress {
 public:
  /// Writes to standard error. `interval`: seconds between plain lines (a terminal is refreshed
  /// some times a second).
  explicit Progress(const Display& display, double interval = 5.0);
  /// Removes the line from a terminal.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Returns whether a line would be shown now; if not, the caller need not compose it.
  bool due() const;
  /// Shows as much of the line as the terminal has room for. It is ASCII.
  void show(const std::string& line);
  /// Ends the line on a terminal, where it stays.
  void finish();
  /// Removes the line from a terminal, so that other output takes its place.
  void clear();

 private:
  const Display display_;
  std::string shown_;  ///< The line that is being rewritten; empty: none.
  std::int64_t interval_ns_;
  std::int64_t last_ns_;
};

}  // namespace duplex::tools
