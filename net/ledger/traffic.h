// Stretches of time, and the figures of a step's traffic and of a run's.
#pragma once
#include <cstdint>
#include <vector>

namespace duplex::net {

/// A stretch of time, [from, to).
struct Interval {
  std::int64_t from = 0, to = 0;
};

/// Returns them sorted, and joined where they overlap.
std::vector<Interval> merged(std::vector<Interval> intervals);
/// Nanoseconds that lie in both of two merged lists.
std::int64_t overlap(const std::vector<Interval>& a, const std::vector<Interval>& b);
std::int64_t length(const std::vector<Interval>& merged);

/// The traffic of one step of a worker, or of the time between two publications of a server: the
/// gradients of the step, and the weights that they make.
struct StepTraffic {
  std::uint64_t step = 0;
  std::uint64_t sent = 0, received = 0;  ///< Bytes of weights and gradients with headers.
  std::int64_t sending_ns = 0;           ///< Time in which a frame was going out.
  std::int64_t receiving_ns = 0;         ///< Time in which a frame was coming in.
  std::int64_t wire_ns = 0;              ///< Time in which either was.
  std::int64_t exposed_ns = 0;           ///< Part of wire_ns in which the worker waited, so that
                                         ///< nothing hid it.
  std::int64_t waited_ns = 0;            ///< Time that the worker waited for these weights.
  /// Bytes that float32 would have had more, in each direction.
  std::int64_t saved_sent = 0, saved_received = 0;

  /// Adds another part of the same step.
  StepTraffic& operator+=(const StepTraffic& part);
};

/// Figures are medians over steps where not said otherwise.
struct TrafficSummary {
  std::uint64_t bytes_sent = 0, bytes_received = 0;  ///< All frames of the whole run.
  std::int64_t saved_sent = 0, saved_received = 0;   ///< Bytes that codings saved of them.
  std::uint64_t steps = 0;                           ///< Steps that the medians are taken over.
  double step_sent = 0, step_received = 0;           ///< Bytes a step.
  /// Seconds of one transfer of all weights in float32, at the rate of sending or of receiving,
  /// whichever is slower: a sender whose bytes fit into the kernel's buffers, or a receiver that
  /// finds them there, sees only a copy.
  double t_comm = 0;
  double wire_seconds = 0;     ///< StepTraffic::wire_ns in seconds.
  double exposed_seconds = 0;  ///< StepTraffic::exposed_ns in seconds.
};

/// The medians over these steps, without the sums of the whole run. `weight_bytes`: bytes of the
/// whole model's weights.
TrafficSummary medians_of(const std::vector<StepTraffic>& steps, std::uint64_t weight_bytes);

}  // namespace duplex::net
