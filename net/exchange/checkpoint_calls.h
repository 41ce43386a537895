// The checkpoints that the ranks of a run have called for, and whether the training ends there.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>

namespace duplex::net {

struct CheckpointCall {
  /// The steps that have been trained then; in an asynchronous run the checkpoint's number, from 1
  /// on.
  std::uint64_t steps = 0;
  /// The signal by which a user ends the training there, pause_mark or reached_mark; 0: it goes on.
  int signal = 0;
};

/// In place of a signal: the ranks end the training there to go on with it at once, in a new run.
constexpr int pause_mark = 255;

/// In place of a signal: the training has come to what it is for, and ends there as if it had no
/// more steps. The weights of that step are the last ones.
constexpr int reached_mark = 254;

/// Returns which of two ends all ranks take where both are called for: signals before a training
/// that has come to its end, and that before a pause; 0 comes last.
int stronger(int signal, int other);

/// In place of a signal, a `checkpoint` frame has this where a rank could not write its part.
constexpr std::uint32_t not_written_mark = 256;

/// The signal of a frame of these, one of these marks, or 0. Throws ProtocolError for one that ends
/// no training.
int ending_signal(std::uint32_t number);

/// Any thread may call it.
class CheckpointCalls {
 public:
  /// Calls that may be open at once, far more than ranks make that work as they should.
  static constexpr std::size_t most_open = 64;

  /// Notes a call. Returns whether it is new, so that the other ranks must hear of it; one for
  /// steps that are over is the echo of an old one. Throws ProtocolError where too many are open.
  bool add(const CheckpointCall& call);
  /// Returns whether there has been such a call.
  bool knows(std::uint64_t steps);
  /// Takes the call for a checkpoint after so many steps, which are over now.
  std::optional<CheckpointCall> take(std::uint64_t steps);
  /// The oldest call that has not been taken.
  std::optional<CheckpointCall> oldest();

  /// Notes that some rank could not write the checkpoint after so many steps. Returns whether that
  /// is new, so that the other ranks must hear of it.
  bool add_unwritten(std::uint64_t steps);
  /// The newest of these checkpoints, at most `most_open`.
  std::set<std::uint64_t> unwritten();

  /// A rank that trains nothing asks this one to call for a checkpoint.
  void ask(int signal);
  /// Takes what was asked for, the signal or 0.
  std::optional<int> take_asked();

 private:
  std::mutex mutex_;                   ///< Guards all below; no other lock is taken meanwhile.
  std::map<std::uint64_t, int> open_;  ///< Signals by steps.
  std::uint64_t over_ = 0;             ///< The steps of the last take().
  std::optional<int> asked_;
  std::set<std::uint64_t> unwritten_;
};

}  // namespace duplex::net
