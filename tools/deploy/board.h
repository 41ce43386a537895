// Shows how far each of many machines is: on a terminal a line for each that is being worked on,
// which is rewritten, and otherwise a plain line for each that is done.
#pragma once
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace duplex::tools {

/// Writes to standard error. Any thread may call its functions.
class Board {
 public:
  explicit Board(const std::vector<std::string>& machines);
  ~Board();
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  /// Says what is being done with a machine; the next call for it takes the line's place.
  void show(std::size_t machine, const std::string& text);
  /// Says for good what has become of a machine: "launch: MACHINE: TEXT".
  void done(std::size_t machine, const std::string& text);
  /// Writes what is shown, if it has not been for a while.
  void refresh();

 private:
  void clear();
  void draw();

  std::mutex mutex_;  ///< Guards all below.
  const std::vector<std::string> machines_;
  std::vector<std::string> shown_;  ///< By machine; empty: not being worked on.
  const bool terminal_;
  std::size_t drawn_ = 0;  ///< Lines of the terminal that will be rewritten.
  std::int64_t last_ns_;
};

}  // namespace duplex::tools
