// Progress: one line that is rewritten on a terminal, otherwise plain lines now and then.
#pragma once
#include <cstdint>
#include <string>

namespace duplex::tools {

class Progress {
 public:
  /// Writes to standard error. `interval`: seconds between plain lines (a terminal is refreshed 10
  /// times a second).
  explicit Progress(double interval = 5.0);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Returns whether a line would be shown now; if not, the caller need not compose it.
  bool due() const;
  void show(const std::string& line);
  /// Ends the line on a terminal, so that other output starts on a fresh one.
  void finish();

 private:
  bool terminal_;
  bool open_ = false;
  std::int64_t interval_ns_;
  std::int64_t last_ns_;
};

/// "1:05", "2:03:09".
std::string clock_text(double seconds);

}  // namespace duplex::tools
