// Errors, with the exit code that each ends the program with.
#pragma once
#include <cstddef>
#include <stdexcept>
#include <string>

namespace duplex {

/// Exit codes of every command.
enum class Exit { ok = 0, failed = 1, usage = 2, peer_lost = 3, timed_out = 4 };

/// An error is one line for the user: what happened, where, and what to do. main prints it and
/// exits with `code`.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message, Exit code = Exit::failed)
      : std::runtime_error(message), code(code) {}

  Exit code;
};

/// Thrown where a device's memory does not suffice.
class OutOfMemory : public Error {
 public:
  /// `asked` bytes were asked for, `free` bytes were free.
  OutOfMemory(const std::string& message, std::size_t asked, std::size_t free)
      : Error(message), asked(asked), free(free) {}

  std::size_t asked, free;
};

}  // namespace duplex
