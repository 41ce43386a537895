#include "tools/training/replay_clock.h"

#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <cerrno>

#include "core/clock.h"

namespace duplex::tools {
namespace {

/// A call that took longer has waited for others, not for the processor.
constexpr std::int64_t waited_ns = 20000;

void sleep_until(std::int64_t deadline) {
  if (clock_ns() >= deadline) return;  // Otherwise the kernel would give the processor away.
  const timespec time{static_cast<time_t>(deadline / 1000000000), deadline % 1000000000};
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr) == EINTR) {
  }
}

}  // namespace

ReplayClock::ReplayClock() {
  ::prctl(PR_SET_TIMERSLACK, 1UL);  // Otherwise a sleep ends up to 50 us late.
}

void ReplayClock::begin() {
  deadline_ = returned_ = clock_ns();
}

void ReplayClock::end_wait() {
  const std::int64_t now = clock_ns();
  if (now - returned_ > waited_ns) deadline_ = std::max(deadline_, now);
}

std::pair<std::int64_t, std::int64_t> ReplayClock::run(double seconds) {
  const std::int64_t begin = deadline_;
  deadline_ += static_cast<std::int64_t>(seconds * 1e9);
  sleep_until(deadline_);
  returned_ = clock_ns();
  return {begin, deadline_};
}

}  // namespace duplex::tools
