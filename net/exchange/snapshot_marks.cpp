#include "net/exchange/snapshot_marks.h"

#include <algorithm>
#include <string>

#include "net/wire/frame.h"

namespace duplex::net {

std::vector<CheckpointCall> SnapshotMarks::open(const CheckpointCall& call) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (call.steps > over_) {
    Open& open = open_[call.steps];
    open.signal = std::max(open.signal, call.signal);
  }
  return take_complete();
}

std::uint64_t SnapshotMarks::begin(int worker) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ended_.erase(worker);
  std::uint64_t newest = over_;
  for (const auto& [number, open] : open_)
    if (open.marked.count(worker) > 0) newest = number;
  return newest;
}

std::vector<CheckpointCall> SnapshotMarks::owed_by(int worker) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<CheckpointCall> owed;
  for (const auto& [number, open] : open_)
    if (open.marked.count(worker) == 0) owed.push_back({number, open.signal});
  return owed;
}

std::vector<CheckpointCall> SnapshotMarks::mark(int worker, const CheckpointCall& call) {
  const std::lock_guard<std::mutex> lock(mutex_);
  // Nobody waits for the marks of a worker that has ended its training; they may come later.
  if (call.steps <= over_) return {};
  Open& open = open_[call.steps];
  if (!open.marked.insert(worker).second)
    throw ProtocolError("checkpoint " + std::to_string(call.steps) + " is marked already");
  if (open_.size() > CheckpointCalls::most_open)
    throw ProtocolError("too many checkpoints are open");
  open.signal = std::max(open.signal, call.signal);
  return take_complete();
}

std::vector<CheckpointCall> SnapshotMarks::end(int worker) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ended_.insert(worker);
  return take_complete();
}

std::vector<CheckpointCall> SnapshotMarks::take_complete() {
  std::vector<CheckpointCall> complete;
  while (!open_.empty()) {
    const auto& [number, open] = *open_.begin();
    std::set<int> there = ended_;
    there.insert(open.marked.begin(), open.marked.end());
    if (static_cast<int>(there.size()) < workers_) break;
    complete.push_back({number, open.signal});
    over_ = number;
    open_.erase(open_.begin());
  }
  return complete;
}

}  // namespace duplex::net
