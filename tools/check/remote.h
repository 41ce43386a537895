// The part of `duplex check` on one machine, as whoever checks sees it: a process here, or one that
// ssh has started there.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"

namespace duplex::tools {

/// While there is one, SIGPIPE must be ignored.
class Remote {
 public:
  /// Throws Error if the command cannot be run.
  explicit Remote(const std::vector<std::string>& command);
  /// Ends the process: its input ends, and if it still runs a little later it is killed.
  ~Remote();
  Remote(const Remote&) = delete;
  Remote& operator=(const Remote&) = delete;

  /// Sends a line. Does nothing if it does not run any more.
  void send(const std::string& line);
  /// Lets the process end by itself, for which it has a moment from now on.
  void close_input();

  /// Returns the descriptor that can be polled for input; -1: that stream has ended.
  int output() const { return streams_[0].from; }
  int errors() const { return streams_[1].from; }
  /// Reads what has come on both. Call it when either can be read.
  void read();
  /// The next line of its output that is an answer, if it has come.
  std::optional<std::string> next_answer();
  /// Returns whether the process has ended.
  bool ended();
  /// Ends it, and says why it has ended, in a line that can be shown: the last one of its errors,
  /// or its exit code.
  std::string last_words();
  /// Its exit code once it has ended, or 128 + the signal that ended it.
  int code() const { return code_; }

 private:
  struct Stream {
    int from = -1;
    std::string text;
  };
  void end();

  std::string program_;
  pid_t pid_ = -1;
  int input_ = -1, code_ = -1;
  Deadline last_{};    ///< A process whose input has ended is killed then.
  Stream streams_[2];  ///< Output, errors.
};

}  // namespace duplex::tools
