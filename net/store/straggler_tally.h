// For whom the others waited: how much later than everybody else's a worker's last gradient of a
// step came to an owner.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

namespace duplex::net {

/// This is what one worker cost the others. Times are in nanoseconds.
struct StragglerTime {
  int worker = 0;
  std::uint64_t steps = 0;        ///< Steps in which its gradients were the last to be complete.
  std::int64_t late_ns = 0;       ///< Time of these steps in which nobody else's were missing.
  std::int64_t receiving_ns = 0;  ///< Part of late_ns in which gradients of it were coming in; in
                                  ///< the rest it had nothing on the wire: it computed.
};

/// An owner tells it of every gradient, and it adds up the steps. Any thread may call it; the calls
/// for one worker come from one thread, in the order of their times. Memory does not grow with the
/// number of steps.
class StragglerTally {
 public:
  /// `chunks`: the gradients that an owner gets from each worker in a step.
  explicit StragglerTally(std::vector<std::size_t> chunks);

  /// The first byte of a gradient is there.
  void begins(int worker, std::int64_t now);
  /// The whole gradient is there.
  void complete(int worker, std::uint64_t step, std::int64_t now);

  /// The workers that were last in some step, the most expensive first.
  std::vector<StragglerTime> sums() const;

 private:
  struct Worker {
    int coming = 0;                ///< Gradients of it that are coming in.
    std::int64_t began = 0;        ///< When the first of these began.
    std::int64_t received_ns = 0;  ///< Time in which gradients of it were coming in, so far.
    StragglerTime sum;
  };
  struct Step {
    std::vector<std::size_t> gradients;     ///< By worker: those that are there.
    std::vector<std::int64_t> received_ns;  ///< By worker: Worker::received_ns at `alone_since`.
    int missing = 0;                        ///< Workers that lack some.
    std::int64_t alone_since = 0;           ///< When all but one were complete.
  };

  std::int64_t received(const Worker& worker, std::int64_t now) const;

  const std::vector<std::size_t> chunks_;  ///< By worker.
  int senders_ = 0;                        ///< Workers that send any.
  /// Guards all below. The threads of connections and the one of local gradients take it, and take
  /// no other lock meanwhile.
  mutable std::mutex mutex_;
  std::vector<Worker> workers_;
  std::map<std::uint64_t, Step> steps_;  ///< Those that have begun and are not over.
};

}  // namespace duplex::net
