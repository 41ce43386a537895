// A thread for signals, so that none interrupts a thread that computes.
#pragma once
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <thread>

namespace duplex::tools {

/// While it lives, SIGINT, SIGTERM and SIGUSR1 come to a thread of its own, and not to the one that
/// made it, nor to any thread that was started meanwhile. What they do is as it was.
///
/// The kernel calls a handler on the stack of the thread that it interrupts. oneDNN's generated
/// multiplications use the stack pointer for a buffer among other memory, and a handler's frame
/// there would overwrite that memory. So it must be made before the first thread that computes.
class SignalThread {
 public:
  SignalThread();
  ~SignalThread();
  SignalThread(const SignalThread&) = delete;
  SignalThread& operator=(const SignalThread&) = delete;

 private:
  sigset_t before_{};
  std::mutex mutex_;  ///< Guards `over_`; no other lock is taken under it.
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace duplex::tools
