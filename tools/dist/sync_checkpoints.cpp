#include "tools/dist/sync_checkpoints.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <utility>

#include "core/error.h"
#include "tools/checkpoint/stop_signals.h"
#include "tools/text/table.h"

namespace duplex::tools {

bool SyncCheckpoints::leads() const {
  return spec_.mesh.topology.worker_number(spec_.rank()) == 0;
}

/// Steps between two moments at which weights include every sample seen.
std::uint64_t SyncCheckpoints::round() const {
  return std::max<std::uint64_t>(spec_.parallel.average, 1);
}

/// Samples that all workers have seen after so many steps.
std::uint64_t SyncCheckpoints::samples(std::uint64_t steps) const {
  return from_.samples + (steps - from_.steps) * spec_.step_samples();
}

/// Returns whether the round of steps that ends there completes what a pause is after.
bool SyncCheckpoints::pauses_after(std::uint64_t steps) const {
  if (pause_samples_ == 0 || steps >= end_) return false;
  return samples(steps) / pause_samples_ > samples(steps - round()) / pause_samples_;
}

/// Returns whether the training ends behind these steps in the middle of a round, where no
/// checkpoint can be taken.
bool SyncCheckpoints::is_last_whole_round(std::uint64_t steps) const {
  return wanted() && steps + end_ % round() == end_ && steps != end_;
}

std::string SyncCheckpoints::extent() const {
  const std::uint64_t steps = stopped_ ? stopped_->steps : from_.steps;
  std::string text = grouped(static_cast<std::int64_t>(steps)) + " steps";
  const auto ranks = static_cast<std::uint32_t>(spec_.mesh.topology.size);
  if (stopped_) return text;
  const bool others = from_.ranks != ranks;
  if (others)
    text +=
        ", which " + std::to_string(from_.ranks) + " ranks trained, with " + std::to_string(ranks);
  // As many ranks with other slots than before have another batch, too.
  const std::uint64_t batch = spec_.step_samples();
  if (spec_.parallel.splits() || (!others && from_.samples == from_.steps * batch)) return text;
  text += ": an update is by " + grouped(static_cast<std::int64_t>(batch)) + " images from here on";
  if (!others)
    text += ", and was by " +
            fixed(static_cast<double>(from_.samples) / static_cast<double>(from_.steps), 0) +
            " on average";
  return text;
}

void SyncCheckpoints::hook_into(net::ExchangeSpec& exchange) {
  exchange.snapshot = [this](const net::CheckpointCall& call) { snapshot(call); };
  exchange.while_serving = [this] { pass_signals_on(); };
  exchange.keeps_before = wanted();
  copies_.prepare(added_, exchange);
}

/// Two rounds lie between a call and its checkpoint, so that every worker has heard of it
/// (ParameterExchange::call_checkpoint).
bool SyncCheckpoints::after(std::uint64_t steps, const std::function<void()>& await_weights) {
  const std::uint64_t target = steps + 2 * round();
  remember(steps);
  int stop = StopSignals::stop();
  bool asked = StopSignals::take_checkpoint_request() || (stop != 0 && passed_on_ != stop);
  passed_on_ = stop;
  if (leads()) {
    if (const auto wanted = wire_->take_asked()) {
      asked = true;
      stop = net::stronger(stop, *wanted);
    }
    if (std::exchange(ends_, false)) {
      wire_->call_checkpoint({target, net::reached_mark});
    } else if (pauses_after(target)) {
      clock_.made(target);
      wire_->call_checkpoint({target, net::pause_mark});
    } else if (clock_.due(target) || is_last_whole_round(target)) {
      clock_.made(target);
      wire_->call_checkpoint({target, 0});
    }
  }
  if (asked) wire_->call_checkpoint({target, stop});
  const std::optional<net::CheckpointCall> call = wire_->called_for(steps);
  if (!call) return true;
  await_weights();
  reached_ = call->signal == net::reached_mark;
  if (reached_) return false;  // Then finish() takes a checkpoint, if any are wanted.
  if (leads()) order_snapshot(*call);
  take(call->steps);
  if (call->signal == 0) return true;
  stopped_ = call;
  return false;
}

/// Orders ranks that only serve, if there are any, to take a checkpoint. It may be whole without a
/// file of this rank, so the rows before it are synced first.
void SyncCheckpoints::order_snapshot(const net::CheckpointCall& call) {
  const net::Topology& topology = spec_.mesh.topology;
  if (topology.workers().size() == static_cast<std::size_t>(topology.size)) return;
  try {
    files_.sync_rows();
  } catch (const Error& error) {
    troubles_.add(error.what());
  }
  wire_->order_snapshot(call);
}

/// Keeps what rescue() needs of this worker's own, beside its chunks, for the last two rounds.
void SyncCheckpoints::remember(std::uint64_t steps) {
  if (!wanted() || added_.empty()) return;
  while (boundaries_.size() > 1) boundaries_.erase(boundaries_.begin());
  boundaries_[steps] = copies_of(added_);
}

/// A receiving thread calls it, on a rank that only serves.
void SyncCheckpoints::snapshot(const net::CheckpointCall& call) {
  const std::lock_guard<std::mutex> lock(taking_);
  if (rescued_) return;
  take(call.steps);
  if (call.signal != 0) stopped_ = call;
}

/// Passes signals on to the first worker.
void SyncCheckpoints::pass_signals_on() {
  const int stop = StopSignals::stop();
  const bool asked = StopSignals::take_checkpoint_request() || stop != passed_on_;
  passed_on_ = stop;
  if (asked) wire_->ask_for_checkpoint(stop);
}

void SyncCheckpoints::finish(std::uint64_t steps) {
  if (!wanted() || steps == 0 || steps == taken_) return;
  if (steps % round() != 0) {
    if (leads())
      spec_.mesh.warn(
          "the training ends in the middle of a round of --average, so that no checkpoint "
          "has its last " +
          std::to_string(steps - taken_) + " steps: --resume would train them again");
    return;
  }
  if (leads()) order_snapshot({steps, 0});
  take(steps);
}

/// Copies this rank's part, and writes it while the training goes on. When one rank takes a
/// checkpoint, all have taken the one before, and so have written the one before that, or have told
/// that they could not: it is never removed while a rank may lack a newer one.
void SyncCheckpoints::take(std::uint64_t steps) {
  wire_->await_state_sent();
  await_copies();
  const std::string error = await_written();
  if (!error.empty()) {
    troubles_.add(error);
    wire_->tell_unwritten(taken_);
  }
  files_.keep_newest(wire_->unwritten());
  taken_ = steps;
  Arrays arrays;
  if (!holds_nothing()) {
    std::optional<Arrays> whole = arrays_of(steps / round(), copies_of(added_));
    if (!whole)
      throw net::ProtocolError("a checkpoint after " + std::to_string(steps) +
                               " steps is called for, and not all chunks of this rank are of them");
    arrays = std::move(*whole);
    copies_.send(*wire_, steps, arrays);
  }
  if (arrays.empty() && !copies_.keeps_any()) return;
  start_writing(steps, arrays.empty() ? std::nullopt : std::optional(std::move(arrays)),
                metadata(steps),
                [this, steps, copies = copies_.copies(), said = common_metadata(steps)] {
                  return copies_.write(files_, steps, copies, said);
                });
}

/// Waits for what comes over the wire for the copies that are being written. A rank that waits here
/// gets on.
void SyncCheckpoints::await_copies() {
  for (std::uint64_t parts = copies_.parts(); !is_written(std::chrono::milliseconds(50));)
    if (std::exchange(parts, copies_.parts()) != copies_.parts()) wire_->progress_made();
}

/// The chunks of all ranks are of two steps at most. This rank cannot know which is the older one,
/// where its own are of one step, so it writes that and the one before.
void SyncCheckpoints::rescue() {
  if (!wanted() || wire_ == nullptr) return;
  const std::lock_guard<std::mutex> lock(taking_);
  rescued_ = true;
  const std::string error = await_written();
  if (!error.empty()) spec_.mesh.warn(error);
  if (is_over_with(taken_)) return;
  const std::uint64_t newest = holds_nothing() ? 0 : newest_step();
  std::string written;
  for (const std::uint64_t steps : {newest - round(), newest}) {
    // The last round of --average may have fewer batches than its number says.
    if (newest < round() || steps == taken_ || steps > end_) continue;
    const auto more = boundaries_.find(steps);
    if (!added_.empty() && more == boundaries_.end()) continue;
    const auto arrays = arrays_of(steps / round(), added_.empty() ? Arrays() : more->second);
    if (!arrays || !finite(*arrays)) continue;
    try {
      CheckpointFiles::Metadata said = metadata(steps);
      said["rescued"] = "yes";
      files_.write(steps, *arrays, said);
      written += (written.empty() ? "" : " and ") + std::to_string(steps);
    } catch (const Error& trouble) {
      spec_.mesh.warn(trouble.what());
    }
  }
  if (!written.empty()) written = "its part of the training after " + written + " steps";
  rescue_copies(written);
  if (!written.empty()) spec_.mesh.warn("keeps " + written);
}

void SyncCheckpoints::rescue_copies(std::string& written) {
  copies_.rescue(*wire_, [&](std::uint64_t rounds, const RankCopies::Copy& copy) {
    const std::uint64_t steps = rounds * round();
    if (steps == 0 || steps == taken_ || steps > end_) return;
    try {
      copies_.write_rescued(files_, steps, copy, common_metadata(steps));
      written += (written.empty() ? "" : ", and ") + std::string("a copy of rank ") +
                 std::to_string(copy.owner) + "'s after " + std::to_string(steps);
    } catch (const Error& trouble) {
      spec_.mesh.warn(trouble.what());
    }
  });
}

/// All files of a checkpoint say this, copies too.
CheckpointFiles::Metadata SyncCheckpoints::common_metadata(std::uint64_t steps) const {
  std::set<int> parts;
  for (int rank = 0; rank < spec_.mesh.topology.size; ++rank)
    if (has_part(rank)) parts.insert(rank);
  CheckpointFiles::Metadata said{{"samples", std::to_string(samples(steps))},
                                 {parts_key, text_of(parts)}};
  if (spec_.parallel.cuts()) said[cut_key] = "yes";
  return said;
}

/// This is what this rank's part says beside its arrays.
CheckpointFiles::Metadata SyncCheckpoints::metadata(std::uint64_t steps) const {
  CheckpointFiles::Metadata said = common_metadata(steps);
  said.merge(RankCheckpoints::metadata());
  return said;
}

/// The newest step that all chunks of this rank have come to, or the steps that this worker has
/// trained where it owns none.
std::uint64_t SyncCheckpoints::newest_step() const {
  std::optional<std::uint64_t> newest;
  for (std::size_t i = 0; i < map_.chunks(); ++i)
    if (map_[i].owner == spec_.rank()) {
      const std::uint64_t step = wire_->step_of(i) * round();
      newest = std::min(newest.value_or(step), step);
    }
  return newest.value_or(boundaries_.empty() ? 0 : boundaries_.rbegin()->first);
}

}  // namespace duplex::tools
