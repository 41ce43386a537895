// What goes wrong, and the exit code it ends the program with.
#pragma once
#include <stdexcept>
#include <string>

namespace duplex {

/// Exit codes of every command.
enum class Exit { ok = 0, failed = 1, usage = 2, peer_lost = 3, timed_out = 4 };

/// One line for the user: what happened, where, and what to do. main prints it and exits with
/// `code`.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message, Exit code = Exit::failed)
      : std::runtime_error(message), code(code) {}

  Exit code;
};

}  // namespace duplex
