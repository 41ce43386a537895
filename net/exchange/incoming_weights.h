// The chunks of weights that a worker waits for, each with the step that it is for and whether it
// is there.
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "core/exchange.h"
#include "net/topology/shard_map.h"

namespace duplex::net {

/// A parameter is complete when the weights of all its chunks are in the span and its last gradient
/// has left this rank's memory. At first all weights are due, for the first step. Of parameters
/// with which this rank does not train, nothing is due, or the last weights alone. Any thread may
/// call it.
class IncomingWeights {
 public:
  /// `map` and `spans` must outlive it. `rank` is this one. `last_of_others`: the step of the last
  /// weights that it is sent of parameters with which it does not train; none: of no step.
  IncomingWeights(const ShardMap& map, const std::vector<Span>& spans, std::uint64_t first_step = 0,
                  int rank = 0, std::optional<std::uint64_t> last_of_others = std::nullopt);

  /// The gradient of a parameter goes out in so many frames, for each of which gradient_sent() is
  /// due, and weights for `step` are due for all its chunks. Returns false, and changes nothing, if
  /// the parameter is not complete.
  bool expect_after_gradient(std::size_t parameter, std::uint64_t step, std::size_t frames);
  /// The last weights of parameters with which this rank does not train are those of `step`, which
  /// is earlier than was known. None of them may have come.
  void expect_others_at(std::uint64_t step);
  /// Weights of every chunk are due once more, for `step`. All workers train with all of them.
  void expect_all(std::uint64_t step);

  /// Returns where the weights of a chunk for `step` go; then call commit(). Null if they are not
  /// due.
  float* reserve(std::size_t chunk, std::uint64_t step);
  void commit(std::size_t chunk);
  /// A parameter is not complete before more() was called once for each of so many `frames`, too.
  void expect_more(std::size_t parameter, std::size_t frames);
  void more(std::size_t parameter) { gradient_sent(parameter); }
  /// A frame of the parameter's gradient has been sent.
  void gradient_sent(std::size_t parameter);

  bool complete(std::size_t parameter) const;
  /// Waits until the parameter is complete, or wake() or stop() is called, or `at_most` has passed.
  /// Returns whether it is complete.
  bool wait(std::size_t parameter, std::chrono::milliseconds at_most);
  /// Ends one wait, since something has happened that its caller should look at.
  void wake();
  /// Ends all waiting for good.
  void stop();

  /// Returns whether weights of the chunk are still to come, and for which step.
  bool missing(std::size_t chunk) const;
  std::uint64_t due_step(std::size_t chunk) const;
  /// Steps whose gradients have been answered with weights of all chunks, those before the first
  /// one included; none: not even the first weights of all chunks have come.
  std::optional<std::uint64_t> answered_steps() const;
  /// Returns the step that the weights in the span are for; none: none have come, or some are on
  /// their way into it.
  std::optional<std::uint64_t> step_here(std::size_t chunk) const;

 private:
  struct Incoming {
    std::uint64_t step = 0;
    /// `none`: this rank does not train with the parameter.
    enum State { due, receiving, received, none } state = due;
  };

  const ShardMap& map_;
  const std::vector<Span>& spans_;
  const int rank_;
  const std::uint64_t first_step_;

  /// Guards all below. The training thread, the pushing one and those of connections and store take
  /// it, and take no other lock meanwhile.
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Incoming> incoming_;      ///< By chunk.
  std::vector<std::size_t> remaining_;  ///< By parameter: what it still lacks to be complete.
  bool woken_ = false, stopped_ = false;
};

}  // namespace duplex::net
