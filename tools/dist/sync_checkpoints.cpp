#include "tools/dist/sync_checkpoints.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <utility>

#include "core/error.h"
#include "core/files/safetensors.h"
#include "layers/checkpoint.h"
#include "tools/checkpoint/state_pieces.h"
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

// ---- Going on from one.

net::ResumeOffer SyncCheckpoints::offer() {
  net::ResumeOffer offer;
  offer.any = holds_nothing();
  offer.never = !offer.any && files_.has_only_begun();
  offered_ = files_.whole();
  const Arrays arrays = wanted_arrays();
  for (const Checkpoint& checkpoint : offered_) {
    offer.complete = offer.complete || !checkpoint.rescued;
    const int ranks = spec_.mesh.topology.size;
    if (checkpoint.ranks != ranks) {
      require_shareable(checkpoint);
      const StatePieces pieces(checkpoint.paths);
      const auto missing = std::find_if(arrays.begin(), arrays.end(), [&](const StateArray& array) {
        return !pieces.has(array);
      });
      if (missing != arrays.end()) {
        spec_.mesh.log("the checkpoint after " + std::to_string(checkpoint.steps) +
                       " steps is of " + std::to_string(checkpoint.ranks) +
                       " ranks, and of their files " + std::to_string(checkpoint.paths.size()) +
                       " are here, none with " + missing->name +
                       ": put all of them into every rank's run directory");
        continue;
      }
    }
    offer.points.push_back(
        {checkpoint.steps, checkpoint.samples, static_cast<std::uint32_t>(checkpoint.ranks)});
  }
  return offer;
}

/// Throws Error if only as many ranks can go on from a checkpoint.
void SyncCheckpoints::require_shareable(const Checkpoint& checkpoint) const {
  if (spec_.parallel.average == 0 || spec_.training.optimiser.states() == 0) return;
  throw Error("--resume: " + checkpoint.path() + " is of " + std::to_string(checkpoint.ranks) +
                  " ranks, and this run has " + std::to_string(spec_.mesh.topology.size) +
                  "; with --average every worker's optimiser has a state of its own, so the number "
                  "must stay the same",
              Exit::usage);
}

void SyncCheckpoints::load_from_other_ranks(const Checkpoint& checkpoint, const Arrays& arrays) {
  const StatePieces pieces(checkpoint.paths);
  for (const StateArray& array : arrays) pieces.load(array);
  // The bytes of ranks that are no more count to one that is.
  const int size = spec_.mesh.topology.size;
  for (const std::string& path : checkpoint.paths) {
    const auto metadata = SafetensorsFile(path).metadata();
    if (static_cast<int>(number_in(metadata, "rank")) % size != spec_.rank()) continue;
    count_bytes(metadata);
  }
}

net::ResumePoint SyncCheckpoints::go_on_from(const net::ResumePoint& point,
                                             net::ExchangeSpec& exchange) {
  const Arrays arrays = wanted_arrays();
  if (!holds_nothing()) {
    const auto checkpoint =
        std::find_if(offered_.begin(), offered_.end(), [&](const Checkpoint& each) {
          return each.steps == point.steps && each.ranks == static_cast<int>(point.ranks);
        });
    if (checkpoint == offered_.end())
      throw Error("--resume: this rank has offered no checkpoint of " +
                  std::to_string(point.steps) + " steps");
    if (checkpoint->ranks == spec_.mesh.topology.size) {
      count_bytes(load_state(checkpoint->path(), arrays, "this rank's part of the training"));
    } else {
      load_from_other_ranks(*checkpoint, arrays);
    }
  }
  files_.remove_after(point.steps);
  clock_.made(point.steps);
  taken_ = point.steps;
  from_ = point;
  exchange.first_step = point.steps / round();
  exchange.initial_state = initial_state();
  return point;
}

std::string SyncCheckpoints::extent() const {
  const std::uint64_t steps = stopped_ ? stopped_->steps : from_.steps;
  std::string text = grouped(static_cast<std::int64_t>(steps)) + " steps";
  const auto ranks = static_cast<std::uint32_t>(spec_.mesh.topology.size);
  if (stopped_ || from_.ranks == ranks) return text;
  text +=
      ", which " + std::to_string(from_.ranks) + " ranks trained, with " + std::to_string(ranks);
  if (!spec_.parallel.splits())
    text += ": an update is by " + grouped(static_cast<std::int64_t>(spec_.step_samples())) +
            " images from here on";
  return text;
}

/// A worker of a central server is such a rank, where its network has no running statistics.
bool SyncCheckpoints::holds_nothing() const {
  return map_.chunks_of(spec_.rank()) == 0 && added_.empty();
}

// ---- Writing them.

void SyncCheckpoints::hook_into(net::ExchangeSpec& exchange) {
  exchange.snapshot = [this](const net::CheckpointCall& call) { snapshot(call); };
  exchange.while_serving = [this] { pass_signals_on(); };
  exchange.keeps_before = wanted();
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
      stop = std::max(stop, *wanted);
    }
    if (clock_.due(target)) {
      clock_.made(target);
      wire_->call_checkpoint({target, 0});
    }
  }
  if (asked) wire_->call_checkpoint({target, stop});
  const std::optional<net::CheckpointCall> call = wire_->called_for(steps);
  if (!call) return true;
  await_weights();
  if (leads()) wire_->order_snapshot(*call);
  take(call->steps);
  if (call->signal == 0) return true;
  stopped_ = call;
  return false;
}

/// Keeps what rescue() needs of this worker's own, beside its chunks, for the last two rounds.
void SyncCheckpoints::remember(std::uint64_t steps) {
  if (!wanted() || added_.empty()) return;
  boundaries_[steps] = copies_of(added_);
  while (boundaries_.size() > 2) boundaries_.erase(boundaries_.begin());
}

/// A receiving thread calls it, on a rank that only serves.
void SyncCheckpoints::snapshot(const net::CheckpointCall& call) {
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
  if (!wanted() || steps == 0 || steps == taken_ || steps % round() != 0) return;
  if (leads()) wire_->order_snapshot({steps, 0});
  take(steps);
}

/// Copies this rank's part, and writes it while the training goes on. When one rank takes a
/// checkpoint, all have taken the one before, and so have written the one before that, or have told
/// that they could not: it is never removed while a rank may lack a newer one.
void SyncCheckpoints::take(std::uint64_t steps) {
  const std::string error = await_written();
  if (!error.empty()) {
    troubles_.add(error);
    wire_->tell_unwritten(taken_);
  }
  files_.keep_newest(wire_->unwritten());
  taken_ = steps;
  if (holds_nothing()) return;
  std::optional<Arrays> whole = arrays_of(steps / round(), copies_of(added_));
  if (!whole)
    throw net::ProtocolError("a checkpoint after " + std::to_string(steps) +
                             " steps is called for, and not all chunks of this rank are of them");
  start_writing(steps, std::move(*whole), metadata(steps));
}

/// The chunks of all ranks are of two steps at most. This rank cannot know which is the older one,
/// where its own are of one step, so it writes that and the one before.
void SyncCheckpoints::rescue() {
  if (!wanted() || wire_ == nullptr || holds_nothing()) return;
  const std::string error = await_written();
  if (!error.empty()) spec_.mesh.log(error);
  const std::uint64_t newest = newest_step();
  std::string written;
  for (const std::uint64_t steps : {newest - round(), newest}) {
    if (newest < round() || steps == taken_) continue;
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
      spec_.mesh.log(trouble.what());
    }
  }
  if (!written.empty())
    spec_.mesh.log("keeps its part of the training after " + written + " steps");
}

/// What a checkpoint says beside its arrays.
CheckpointFiles::Metadata SyncCheckpoints::metadata(std::uint64_t steps) const {
  CheckpointFiles::Metadata said = RankCheckpoints::metadata();
  said["samples"] = std::to_string(samples(steps));
  return said;
}

/// The newest step that all chunks of this rank have come to, or the steps that this worker has
/// trained where it owns none.
std::uint64_t SyncCheckpoints::newest_step() const {
  std::optional<std::uint64_t> newest;
  for (std::size_t i = 0; i < map_.chunks(); ++i)
    if (map_[i].owner == spec_.rank()) {
      const std::uint64_t step = wire_->store().step_of(i) * round();
      newest = std::min(newest.value_or(step), step);
    }
  return newest.value_or(boundaries_.empty() ? 0 : boundaries_.rbegin()->first);
}

}  // namespace duplex::tools
