// Runs a command to its end, feeds it, and keeps what it says: ssh with a script for a machine.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace duplex::tools {

/// A command reads `text` first, then `file` from `offset` to its end.
struct CallInput {
  std::string text;
  int file = -1;  ///< Stays open. -1: none.
  std::uint64_t offset = 0;
};

struct CallResult {
  int code = 0;  ///< Exit code, or 128 + the signal that ended it.
  std::string out, err;

  /// Says in one line why the command failed: what the script said, else the last line that the
  /// command wrote to standard error.
  std::string reason() const;
};

/// The scripts' own lines begin so; a machine's shell may say other things at its start.
constexpr const char* script_line = "duplex-deploy ";

/// The lines that a script wrote behind script_line, without what could move a terminal's cursor.
std::vector<std::string> script_lines(const std::string& out);

/// Runs a command in a process group of its own, which is ended when `stop` becomes true: by
/// SIGTERM, and once more after two seconds. `fed` is
/// told how many bytes the command has taken so far, and may be empty. With `out_file`, standard
/// output goes there, and `out` stays empty. SIGPIPE must be ignored. Any thread may call it.
/// Throws Error if no process can be made.
CallResult call(const std::vector<std::string>& command, const CallInput& input,
                const std::atomic<bool>& stop, const std::function<void(std::uint64_t)>& fed = {},
                int out_file = -1);

/// While it lives, writing to a command that has ended is an error, and not the end of this
/// program.
class PipesMayBreak {
 public:
  PipesMayBreak();
  ~PipesMayBreak();
  PipesMayBreak(const PipesMayBreak&) = delete;
  PipesMayBreak& operator=(const PipesMayBreak&) = delete;

 private:
  void (*before_)(int);
};

}  // namespace duplex::tools
