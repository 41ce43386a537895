// Runs a student's code in a process of its own, with limits, so that whatever it does is only
// reported.
#pragma once
#include <chrono>
#include <functional>
#include <string>

namespace duplex::course {

/// A sanitizer needs more memory than any limit, opens files, and reports crashes by itself.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool built_with_sanitizer = true;
#elif defined(__has_feature)
constexpr bool built_with_sanitizer =
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool built_with_sanitizer = false;
#endif

/// This is how work in a child process ended.
struct Outcome {
  enum class How {
    finished,
    threw,    ///< It threw an exception; `what` is its text.
    touched,  ///< It touched memory that it may not touch, at `address`.
    killed,   ///< It was ended by `signal`.
    timed_out,
    left,  ///< It ended the process itself (exit()).
  };
  How how = How::finished;
  std::string what;
  int signal = 0;
  const void* address = nullptr;
  bool nowhere = false;  ///< The address is none that a program can have, and is not known.
  double seconds = 0.0;  ///< The work took so much processor time, where it finished.
};

struct Limits {
  std::chrono::milliseconds time{5000};
  /// The child may add so many bytes. Builds with a sanitizer limit neither memory nor files.
  std::size_t memory = std::size_t{2} << 30;
};

/// Runs `work` in a child process and waits for its end. Memory that both are to see has to be
/// shared (Guarded). The child may open a few files, and write 16 MiB to each. Throws Error where
/// no process can be made.
Outcome run_in_child(const std::function<void()>& work, const Limits& limits = {});

}  // namespace duplex::course
