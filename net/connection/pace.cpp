#include "net/connection/pace.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace duplex::net {
namespace {

/// The part of a step in which every connection must have had bytes under way or waiting; a step
/// with less is passed over.
constexpr double busy_enough = 0.9;
/// The windows that must go out in a step at least; a step with fewer is passed over.
constexpr double many_windows = 16;

/// Lengths of the queue at a step's end, as parts of the windows. `aim` is what should wait. Up to
/// `empty` there is no queue, since segments that leave together always wait for one another. Above
/// `full` it is the windows that bound the queue.
constexpr double aim = 0.4, empty = 0.1, full = 0.6;

/// The rate changes by this part of what the queue exceeds its aim by, over the bytes of the step.
/// Half of a queue drains between steps, so the control loop would oscillate from 1/2 on.
constexpr double gain = 0.125;
/// The part by which the rate grows at most in a step, while it grows ever faster.
constexpr double most_growth = 0.05;

constexpr std::size_t steps_to_find = 2, steps_to_keep = 4;
/// If the rate has fallen by this part, the queue is of other traffic than this run's.
constexpr double too_low = 0.03;

double seconds(std::chrono::duration<double> time) {
  return time.count();
}

}  // namespace

std::optional<double> Pace::step(Clock::time_point now, const std::vector<Flow>& flows,
                                 double window) {
  const std::optional<Look> before = std::exchange(before_, Look{now, flows});
  if (!before || before->flows.size() != flows.size() || flows.empty()) return std::nullopt;
  const double time = seconds(now - before->at);
  double bytes = 0, taken = 0, queued = 0, busy = time;
  for (std::size_t i = 0; i < flows.size(); ++i) {
    const double out = static_cast<double>(flows[i].acknowledged - before->flows[i].acknowledged);
    const double while_busy = seconds(flows[i].busy - before->flows[i].busy);
    bytes += out;
    if (while_busy > 0) taken += out / while_busy;
    queued += seconds(flows[i].queued) / static_cast<double>(flows.size());
    busy = std::min(busy, while_busy);
  }
  if (busy < busy_enough * time || bytes < many_windows * window) {
    if (std::exchange(passed_over_, true)) forget();
    return rate_;
  }
  passed_over_ = false;
  const double filled = queued * taken / window;
  const bool finding = !rate_;
  if (filled > full) look_for(taken);
  if (rate_ && !finding) steer(filled, window, bytes);
  return rate_;
}

void Pace::forget() {
  rate_.reset();
  taken_.clear();
  change_ = 0;
}

void Pace::look_for(double taken) {
  if (taken_.size() == steps_to_keep) taken_.erase(taken_.begin());
  taken_.push_back(taken);
  if (taken_.size() < steps_to_find) return;
  const double most = *std::max_element(taken_.begin(), taken_.end());
  if (!rate_) found_ = most;
  rate_ = std::min(rate_.value_or(most), most);
}

void Pace::steer(double filled, double window, double bytes) {
  const double change = gain * (aim - filled) * window / bytes;
  change_ = filled < empty ? std::max(change, std::min(2 * change_, most_growth)) : change;
  *rate_ *= 1 + change_;
  if (*rate_ < (1 - too_low) * found_) forget();
}

}  // namespace duplex::net
