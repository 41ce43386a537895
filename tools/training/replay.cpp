#include "tools/training/replay.h"

#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <cerrno>

#include "core/clock.h"

namespace duplex::tools {
namespace {

/// An await that took longer has waited for weights, not for the processor.
constexpr std::int64_t waited_ns = 20000;

void sleep_until(std::int64_t deadline) {
  if (clock_ns() >= deadline) return;  // Otherwise the kernel would give the processor away.
  const timespec time{static_cast<time_t>(deadline / 1000000000), deadline % 1000000000};
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr) == EINTR) {
  }
}

}  // namespace

Replay::Replay(const Model& model, LayerTimes times) : times_(std::move(times)) {
  std::size_t next = 0;
  for (const Model::Entry& entry : model.nodes()) {
    parameters_.emplace_back();
    if (!entry.layer) continue;
    for (const ParameterSpec& spec : model.parameters(entry)) {
      if (spec.trained) parameters_.back().push_back(next++);
    }
  }
  ::prctl(PR_SET_TIMERSLACK, 1UL);  // Otherwise a sleep ends up to 50 us late.
}

void Replay::forward(std::size_t layer) {
  const std::int64_t now = clock_ns();
  if (layer == 0)
    deadline_ = now;
  else if (!parameters_[layer].empty() && now - returned_ > waited_ns)
    deadline_ = std::max(deadline_, now);
  run(layer, Phase::forward);
  returned_ = clock_ns();
}

void Replay::backward(std::size_t layer) {
  run(layer, Phase::backward);
}

void Replay::run(std::size_t layer, Phase phase) {
  const double seconds = (phase == Phase::forward ? times_.forward : times_.backward)[layer];
  if (seconds <= 0.0) return;
  const std::int64_t begin = deadline_;
  deadline_ += static_cast<std::int64_t>(seconds * 1e9);
  sleep_until(deadline_);
  if (observer_) observer_(layer, phase, begin, deadline_);
}

}  // namespace duplex::tools
