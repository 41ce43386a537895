// The marks of an asynchronous checkpoint: which workers have taken their parts of it, so that an
// owner knows when to copy its chunks.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "net/exchange/checkpoint_calls.h"

namespace duplex::net {

/// A worker marks a checkpoint when the gradients of all its steps so far have been applied, and
/// before its next one. When the last worker has, each chunk has at least the gradients that every
/// worker had pushed at its mark. Any thread may call it.
class SnapshotMarks {
 public:
  /// `last`: the number of the checkpoint that the run goes on from.
  explicit SnapshotMarks(int workers, std::uint64_t last = 0) : workers_(workers), over_(last) {}

  /// A checkpoint is called for. Returns it if there is no worker to wait for.
  std::vector<CheckpointCall> open(const CheckpointCall& call);
  /// Returns the checkpoints that all workers have marked now, in order. Throws ProtocolError for a
  /// mark that came already, unless the checkpoint is complete, and where too many are open.
  std::vector<CheckpointCall> mark(int worker, const CheckpointCall& call);
  /// The worker pushes no more: its marks are no longer waited for.
  std::vector<CheckpointCall> end(int worker);
  /// The worker pushes again: checkpoints that are not complete wait for its marks. Returns the
  /// number of the newest that is complete or that it has marked.
  std::uint64_t begin(int worker);
  /// Returns the open checkpoints that the worker has not marked.
  std::vector<CheckpointCall> owed_by(int worker);

 private:
  struct Open {
    int signal = 0;
    std::set<int> marked;
  };
  std::vector<CheckpointCall> take_complete();

  const int workers_;
  std::mutex mutex_;  ///< Guards all below; no other lock is taken meanwhile.
  std::map<std::uint64_t, Open> open_;
  std::uint64_t over_ = 0;  ///< The newest one that was complete.
  std::set<int> ended_;
};

}  // namespace duplex::net
