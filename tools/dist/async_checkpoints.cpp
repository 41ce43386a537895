#include "tools/dist/async_checkpoints.h"

#include <algorithm>
#include <csignal>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "tools/checkpoint/stop_signals.h"
#include "tools/dist/chunk_records.h"
#include "tools/text/table.h"

namespace duplex::tools {

void AsyncCheckpoints::hook_into(net::ExchangeSpec& exchange) {
  exchange.snapshot = [this](const net::CheckpointCall& call) { snapshot(call); };
  exchange.while_serving = [this] { look_at_signals(progress()); };
  exchange.while_ending = [this] {
    look_at_signals(steps_);
    take_part([] {});
  };
}

void AsyncCheckpoints::attach(net::ParameterExchange& wire) {
  RankCheckpoints::attach(wire);
  steps_ = from_.steps;
  clock_.made(trains() ? steps_ : progress());
  if (trains()) remember(steps_);
}

/// Steps of a worker on the average, as a server that does not train sees it.
std::uint64_t AsyncCheckpoints::progress() const {
  return wire_->store().step_of(0) / workers();
}

/// Passes signals on to the rank that calls for checkpoints; that one calls when a signal asks for
/// it or one is due, and everybody has taken the one before.
void AsyncCheckpoints::look_at_signals(std::uint64_t steps) {
  int stop = StopSignals::stop();
  if (stop == 0 && ends_) stop = net::reached_mark;
  bool asked = StopSignals::take_checkpoint_request() || stop != passed_on_;
  passed_on_ = stop;
  if (!wire_->calls_for_checkpoints()) {
    if (asked) wire_->ask_for_checkpoint(stop);
    return;
  }
  if (const auto wanted = wire_->take_asked()) {
    asked = true;
    stop = net::stronger(stop, *wanted);
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    asked_ = asked_ || asked || clock_.due(steps);
    const bool open = called_ > taken_;
    if (no_more_ || !asked_ || (open && stop == 0)) return;
    called_ = std::max(called_, taken_) + 1;
    no_more_ = stop != 0;
    asked_ = false;
    clock_.made(steps);
  }
  if (trains())
    wire_->call_checkpoint({called_, stop});
  else
    wire_->call_and_open_checkpoint({called_, stop});
}

bool AsyncCheckpoints::after(std::uint64_t steps, const std::function<void()>& await_weights) {
  steps_ = std::min(steps, own_end_);
  remember(steps);
  look_at_signals(steps_);
  return take_part(await_weights);
}

/// Takes this worker's part of what was called for, unless its chunks' part of the one before is
/// still to come. Returns whether the training goes on.
bool AsyncCheckpoints::take_part(const std::function<void()>& await_weights) {
  while (!ended()) {
    const std::optional<net::CheckpointCall> call = wire_->open_call();
    if (!call) return true;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!parts_.empty() && call->signal == 0) return true;
    }
    await_weights();
    wire_->called_for(call->steps);
    reached_ = call->signal == net::reached_mark;
    if (!reached_) {
      const std::lock_guard<std::mutex> lock(mutex_);
      prune(*call);
      if (!owns())
        write(call->steps, {steps_, copies_of(added_)}, {});
      else if (!last_part_)
        parts_[call->steps] = {steps_, copies_of(added_)};
    }
    wire_->mark_checkpoint(*call);
    if (call->signal != 0 && !reached_) stopped_ = call;
  }
  return false;
}

void AsyncCheckpoints::own_steps_ended() {
  own_end_ = steps_;
  if (!owns()) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  last_part_ = Part{steps_, copies_of(added_)};
}

/// All workers have marked the checkpoint, or ended their training: the chunks are copied.
void AsyncCheckpoints::snapshot(const net::CheckpointCall& call) {
  if (call.signal == net::reached_mark) return;  // Then finish() writes one, if any are wanted.
  const std::lock_guard<std::mutex> lock(mutex_);
  prune(call);
  const auto part = parts_.find(call.steps);
  write(call.steps, part == parts_.end() ? last_part_.value_or(Part()) : part->second,
        lost_ranks());
  parts_.erase(parts_.begin(), parts_.upper_bound(call.steps));
  if (!trains() && call.signal != 0) stopped_ = call;
}

std::set<int> AsyncCheckpoints::lost_ranks() const {
  const std::vector<int> lost = wire_->lost();
  return {lost.begin(), lost.end()};
}

/// Waits for the checkpoint before, tells the others if it cannot be written, and removes those
/// that nobody needs. Whoever takes a checkpoint has written the one before the last, or told that
/// it could not, ahead of its mark of the last. That does not hold where a signal calls for the
/// last, which waits for none before.
void AsyncCheckpoints::prune(const net::CheckpointCall& call) {
  const std::string error = await_written();
  if (!error.empty()) {
    troubles_.add(error);
    wire_->tell_unwritten(taken_);
  }
  if (call.signal == 0) files_.keep_newest(wire_->unwritten());
}

/// Copies the chunks, and writes them with a worker's part while the training goes on.
void AsyncCheckpoints::write(std::uint64_t number, const Part& part, const std::set<int>& absent) {
  std::vector<net::ChunkRecord> records;
  std::optional<Arrays> arrays = arrays_of(0, part.arrays, &records);
  CheckpointFiles::Metadata said = metadata();
  said["run"] = std::to_string(wire_->epoch_ns());
  if (trains()) said["step"] = std::to_string(part.steps);
  if (owns()) {
    said["applied"] = text_of(records);
    said["staleness"] = text_of(wire_->staleness());
    said["absent"] = text_of(absent);
  }
  taken_ = number;
  start_writing(number, std::move(*arrays), std::move(said));
}

/// Every rank has heard of all calls by now, ahead of the last weights.
void AsyncCheckpoints::end() {
  if (trains()) take_part([] {});
}

void AsyncCheckpoints::finish(std::uint64_t steps) {
  if (!wanted()) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  prune({});
  write(taken_ + 1, {steps, copies_of(added_)}, lost_ranks());
}

// ---- When a run fails.

/// Keeps what keep_weights() needs of this worker's own, for the last two steps.
void AsyncCheckpoints::remember(std::uint64_t steps) {
  if (!wanted() || owns()) return;
  while (boundaries_.size() > 1) boundaries_.erase(boundaries_.begin());
  boundaries_[steps] = copies_of(added_);
}

void AsyncCheckpoints::rescue() {
  if (!wanted() || wire_ == nullptr || (trains() && owns())) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::string error = await_written();
  if (!error.empty()) spec_.mesh.warn(error);
  if (is_over_with(taken_)) return;
  try {
    const std::string kept = trains() ? keep_weights() : keep_chunks();
    const std::string trouble = kept.empty() ? "" : await_written();
    if (!trouble.empty())
      spec_.mesh.warn(trouble);
    else if (!kept.empty())
      spec_.mesh.warn("keeps " + kept);
  } catch (const Error& failed) {
    spec_.mesh.warn(failed.what());
  }
}

/// A server has lost its workers. Returns what it keeps; "": nothing.
std::string AsyncCheckpoints::keep_chunks() {
  std::vector<net::ChunkRecord> records;
  const std::optional<Arrays> arrays = arrays_of(0, {}, &records);
  const std::vector<std::uint64_t> positions = positions_of(records);
  if (!arrays || !finite(*arrays) ||
      std::all_of(positions.begin(), positions.end(), [](std::uint64_t at) { return at == 0; }))
    return "";
  const std::vector<int> all = spec_.mesh.topology.workers();
  write(std::max(called_, taken_) + 1, {}, {all.begin(), all.end()});
  return "the training as it is";
}

/// A worker has lost its server: its gradients up to some step have been answered. Where the
/// server's weights were rounded on the wire these are, too: the server goes on from them, since
/// that loses less than the steps since the last checkpoint. A worker that has not even got the
/// first weights keeps that it has not begun, without which the others' files would be of no use.
/// Returns what it keeps; "": nothing.
std::string AsyncCheckpoints::keep_weights() {
  const std::optional<std::uint64_t> answered = wire_->answered_steps();
  const std::uint64_t steps = answered.value_or(0);
  if ((!answered && from_.steps > 0) || boundaries_.count(steps) == 0) return "";
  Arrays arrays;
  for (std::size_t i = 0; answered && i < map_.chunks(); ++i) {
    const net::Chunk& chunk = map_[i];
    const Span& span = spans_.spans[chunk.parameter];
    const float* from = span.weights + chunk.offset;
    arrays.push_back({std::string(kept_prefix) + name_of(chunk, spans_.places[chunk.parameter]),
                      Shape{static_cast<std::int64_t>(chunk.count)},
                      [from, &chunk](float* to) { std::copy_n(from, chunk.count, to); },
                      {}});
  }
  if (!finite(arrays)) return "";
  steps_ = std::min(steps, own_end_);
  for (StateArray& array : boundaries_[steps]) arrays.push_back(array);
  CheckpointFiles::Metadata said = metadata();
  said["run"] = std::to_string(wire_->epoch_ns());
  said["step"] = std::to_string(steps_);
  said["kept_at"] = std::to_string(answered ? wire_->last_weights_ns() : 0);
  said["rescued"] = "yes";
  start_writing(taken_ + 1, std::move(arrays), std::move(said));
  if (!answered) return "that it has not begun to train";
  return "the weights that it got last, after its step " +
         grouped(static_cast<std::int64_t>(steps_));
}

std::string AsyncCheckpoints::extent() const {
  const auto text = [](std::uint64_t steps) { return grouped(static_cast<std::int64_t>(steps)); };
  if (trains()) return text(stopped_ ? steps_ : from_.steps) + " steps";
  std::vector<std::uint64_t> positions = from_.positions;
  if (stopped_) {
    std::vector<net::ChunkRecord> records;
    arrays_of(0, {}, &records);
    positions = positions_of(records);
  }
  return text(std::accumulate(positions.begin(), positions.end(), std::uint64_t{0})) +
         " steps of its " + std::to_string(workers()) +
         (workers() == 1 ? " worker" : " workers together");
}

}  // namespace duplex::tools
