// Runs a student's code in a process of its own, with limits, so that whatever it does is only
// reported.
#pragma once
#include <chrono>
#include <functional>
#include <string>

namespace duplex::course {

/// This is how work in a child process ended.
struct Outcome {
  enum class How {
    finished,
    threw,    ///< An exception; `what` is its text.
    touched,  ///< Memory that it may not touch, at `address`.
    killed,   ///< By `signal`.
    timed_out,
    left,  ///< The process ended itself (exit()).
  };
  How how = How::finished;
  std::string what;
  int signal = 0;
  const void* address = nullptr;
  double seconds = 0.0;  ///< From the beginning of the work to its end, where it finished.
};

struct Limits {
  std::chrono::milliseconds time{5000};
  std::size_t memory = std::size_t{2}
                       << 30;  ///< Bytes that the child may add; not in builds with a sanitizer.
};

/// Runs `work` in a child process and waits for its end. Memory that both are to see has to be
/// shared (Guarded). The child may open a few files, and write 16 MiB to each. Throws Error where
/// no process can be made.
Outcome run_in_child(const std::function<void()>& work, const Limits& limits = {});

}  // namespace duplex::course
