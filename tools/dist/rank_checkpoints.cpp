#include "tools/dist/rank_checkpoints.h"

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
namespace {

net::ShardMap map_of(const DistSpec& spec, const HostParameters& host) {
  std::vector<std::size_t> counts;
  for (const Span& span : host.spans()) counts.push_back(span.count);
  return spec.mesh.topology.shard_map(counts, spec.parallel.shards, spec.exchange().chunk_bytes);
}

/// "conv1.weight[4096:8192]".
std::string name_of(const net::Chunk& chunk, const std::string& parameter) {
  return piece_name(parameter, chunk.offset, chunk.offset + chunk.count);
}

std::uint64_t number_in(const CheckpointFiles::Metadata& metadata, const std::string& key) {
  const auto entry = metadata.find(key);
  return entry == metadata.end() ? 0 : std::strtoull(entry->second.c_str(), nullptr, 10);
}

bool finite(const std::vector<StateArray>& arrays) {
  std::vector<float> values;
  return std::all_of(arrays.begin(), arrays.end(), [&](const StateArray& array) {
    values.resize(static_cast<std::size_t>(array.shape.elements()));
    array.get(values.data());
    return all_finite(values.data(), values.size());
  });
}

/// A copy of an array, which the result holds.
StateArray copied(std::string name, const Shape& shape, std::vector<float> values) {
  const auto held = std::make_shared<const std::vector<float>>(std::move(values));
  return {
      std::move(name), shape, [held](float* to) { std::copy(held->begin(), held->end(), to); }, {}};
}

std::vector<StateArray> copies_of(const std::vector<StateArray>& arrays) {
  std::vector<StateArray> copies;
  for (const StateArray& array : arrays) {
    std::vector<float> values(static_cast<std::size_t>(array.shape.elements()));
    array.get(values.data());
    copies.push_back(copied(array.name, array.shape, std::move(values)));
  }
  return copies;
}

}  // namespace

RankCheckpoints::RankCheckpoints(const DistSpec& spec, CheckpointFiles files, HostParameters& host,
                                 Troubles& troubles)
    : spec_(spec),
      host_(host),
      troubles_(troubles),
      files_(std::move(files)),
      clock_(spec.training.checkpoints, 0),
      map_(map_of(spec, host)) {}

RankCheckpoints::~RankCheckpoints() {
  if (writing_.valid()) writing_.wait();
}

void RankCheckpoints::add(std::vector<StateArray> arrays) {
  for (StateArray& array : arrays) added_.push_back(std::move(array));
}

bool RankCheckpoints::leads() const {
  return spec_.mesh.topology.worker_number(spec_.rank()) == 0;
}

/// Steps between two moments at which weights include every sample seen.
std::uint64_t RankCheckpoints::round() const {
  return std::max<std::uint64_t>(spec_.parallel.average, 1);
}

/// Samples that all workers have seen after so many steps.
std::uint64_t RankCheckpoints::samples(std::uint64_t steps) const {
  return from_.samples + (steps - from_.steps) * spec_.step_samples();
}

// ---- Going on from one.

net::ResumeOffer RankCheckpoints::offer() {
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
void RankCheckpoints::require_shareable(const Checkpoint& checkpoint) const {
  if (spec_.parallel.average == 0 || spec_.training.optimiser.states() == 0) return;
  throw Error("--resume: " + checkpoint.path() + " is of " + std::to_string(checkpoint.ranks) +
                  " ranks, and this run has " + std::to_string(spec_.mesh.topology.size) +
                  "; with --average every worker's optimiser has a state of its own, so the number "
                  "must stay the same",
              Exit::usage);
}

void RankCheckpoints::note_begin() const {
  if (wanted() && !holds_nothing()) files_.note_begin();
}

/// Everything that this rank needs of a checkpoint; setting it fills the host's weights, what was
/// added, and optimiser_.
RankCheckpoints::Arrays RankCheckpoints::wanted_arrays() {
  const std::vector<std::string> states = optimiser_names();
  Arrays arrays = added_;
  for (std::size_t i = 0; i < map_.chunks(); ++i) {
    const net::Chunk& chunk = map_[i];
    if (chunk.owner != spec_.rank()) continue;
    const Span& span = host_.spans()[chunk.parameter];
    const auto count = static_cast<std::int64_t>(chunk.count);
    const std::string name = name_of(chunk, span.name);
    arrays.push_back({name, Shape{count}, {}, [&span, &chunk](const float* from) {
                        std::copy_n(from, chunk.count, span.weights + chunk.offset);
                      }});
    for (const std::string& state : states)
      arrays.push_back({optimiser_prefix + state + "." + name,
                        Shape{count},
                        {},
                        [this, i, &chunk](const float* from) {
                          optimiser_[i].emplace_back(from, from + chunk.count);
                        }});
  }
  return arrays;
}

void RankCheckpoints::load_from_other_ranks(const Checkpoint& checkpoint, const Arrays& arrays) {
  const StatePieces pieces(checkpoint.paths);
  for (const StateArray& array : arrays) pieces.load(array);
  // The bytes of ranks that are no more count to one that is.
  const int size = spec_.mesh.topology.size;
  for (const std::string& path : checkpoint.paths) {
    const auto metadata = SafetensorsFile(path).metadata();
    if (static_cast<int>(number_in(metadata, "rank")) % size != spec_.rank()) continue;
    before_.sent += number_in(metadata, "bytes_sent");
    before_.received += number_in(metadata, "bytes_received");
  }
}

void RankCheckpoints::go_on_from(const net::ResumePoint& point, net::ExchangeSpec& exchange) {
  optimiser_.assign(map_.chunks(), {});
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
      const auto metadata =
          load_state(checkpoint->path(), arrays, "this rank's part of the training");
      before_ = {number_in(metadata, "bytes_sent"), number_in(metadata, "bytes_received")};
    } else {
      load_from_other_ranks(*checkpoint, arrays);
    }
  }
  files_.remove_after(point.steps);
  clock_.made(point.steps);
  taken_ = point.steps;
  from_ = point;
  exchange.first_step = point.steps / round();
  exchange.initial_state = [this](std::size_t chunk, const std::vector<float*>& state) {
    for (std::size_t k = 0; k < state.size(); ++k)
      std::copy(optimiser_[chunk][k].begin(), optimiser_[chunk][k].end(), state[k]);
    optimiser_[chunk].clear();
  };
}

std::vector<std::string> RankCheckpoints::optimiser_names() const {
  // A worker that averages weights has the optimiser's state itself.
  if (spec_.parallel.average > 0) return {};
  return spec_.training.optimiser.state_names();
}

/// A worker of a central server is such a rank, where its network has no running statistics.
bool RankCheckpoints::holds_nothing() const {
  return map_.chunks_of(spec_.rank()) == 0 && added_.empty();
}

// ---- Writing them.

/// Two rounds lie between a call and its checkpoint, so that every worker has heard of it
/// (ParameterExchange::call_checkpoint).
bool RankCheckpoints::after(std::uint64_t steps, const std::function<void()>& await_weights) {
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
void RankCheckpoints::remember(std::uint64_t steps) {
  if (!wanted() || added_.empty()) return;
  boundaries_[steps] = copies_of(added_);
  while (boundaries_.size() > 2) boundaries_.erase(boundaries_.begin());
}

void RankCheckpoints::snapshot(const net::CheckpointCall& call) {
  take(call.steps);
  if (call.signal != 0) stopped_ = call;
}

void RankCheckpoints::pass_signals_on() {
  const int stop = StopSignals::stop();
  const bool asked = StopSignals::take_checkpoint_request() || stop != passed_on_;
  passed_on_ = stop;
  if (asked) wire_->ask_for_checkpoint(stop);
}

void RankCheckpoints::finish(std::uint64_t steps) {
  if (!wanted() || steps == 0 || steps == taken_ || steps % round() != 0) return;
  if (leads()) wire_->order_snapshot({steps, 0});
  take(steps);
}

/// Copies this rank's part, and writes it while the training goes on. When one rank takes a
/// checkpoint, all have taken the one before, and so have written the one before that, or have told
/// that they could not: it is never removed while a rank may lack a newer one.
void RankCheckpoints::take(std::uint64_t steps) {
  const std::string error = await_written();
  if (!error.empty()) {
    troubles_.add(error);
    wire_->tell_unwritten(taken_);
  }
  files_.keep_newest(wire_->unwritten());
  taken_ = steps;
  if (holds_nothing()) return;
  std::optional<Arrays> whole = arrays_of(steps, copies_of(added_));
  if (!whole)
    throw net::ProtocolError("a checkpoint after " + std::to_string(steps) +
                             " steps is called for, and not all chunks of this rank are of them");
  const auto arrays = std::make_shared<const Arrays>(std::move(*whole));
  const CheckpointFiles::Metadata said = metadata(steps);
  writing_ = std::async(std::launch::async, [this, steps, arrays, said]() -> std::string {
    try {
      files_.write(steps, *arrays, said);
      return "";
    } catch (const std::exception& error) {
      return error.what();
    }
  });
}

/// Returns the arrays of a checkpoint: `more`, and all chunks of this rank as they are after so
/// many steps, now or before their last update; none if a chunk is of other steps.
std::optional<RankCheckpoints::Arrays> RankCheckpoints::arrays_of(std::uint64_t steps,
                                                                  const Arrays& more) const {
  const std::vector<std::string> states = optimiser_names();
  Arrays arrays = more;
  for (std::size_t i = 0; i < map_.chunks(); ++i) {
    const net::Chunk& chunk = map_[i];
    if (chunk.owner != spec_.rank()) continue;
    std::optional<net::ChunkState> state = wire_->store().state(i, steps / round());
    if (!state) return std::nullopt;
    const Shape shape{static_cast<std::int64_t>(chunk.count)};
    const std::string name = name_of(chunk, host_.spans()[chunk.parameter].name);
    arrays.push_back(copied(name, shape, std::move(state->weights)));
    for (std::size_t k = 0; k < states.size(); ++k)
      arrays.push_back(
          copied(optimiser_prefix + states[k] + "." + name, shape, std::move(state->optimiser[k])));
  }
  return arrays;
}

/// The chunks of all ranks are of two steps at most. This rank cannot know which is the older one,
/// where its own are of one step, so it writes that and the one before.
void RankCheckpoints::rescue() {
  if (!wanted() || wire_ == nullptr || holds_nothing()) return;
  const std::string error = await_written();
  if (!error.empty()) spec_.mesh.log(error);
  const std::uint64_t newest = newest_step();
  std::string written;
  for (const std::uint64_t steps : {newest - round(), newest}) {
    if (newest < round() || steps == taken_) continue;
    const auto more = boundaries_.find(steps);
    if (!added_.empty() && more == boundaries_.end()) continue;
    const auto arrays = arrays_of(steps, added_.empty() ? Arrays() : more->second);
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
CheckpointFiles::Metadata RankCheckpoints::metadata(std::uint64_t steps) const {
  const net::FrameBytes now = wire_->ledger().bytes();
  return {{"rank", std::to_string(spec_.rank())},
          {"samples", std::to_string(samples(steps))},
          {"bytes_sent", std::to_string(before_.sent + now.sent)},
          {"bytes_received", std::to_string(before_.received + now.received)}};
}

/// The newest step that all chunks of this rank have come to, or the steps that this worker has
/// trained where it owns none.
std::uint64_t RankCheckpoints::newest_step() const {
  std::optional<std::uint64_t> newest;
  for (std::size_t i = 0; i < map_.chunks(); ++i)
    if (map_[i].owner == spec_.rank()) {
      const std::uint64_t step = wire_->store().step_of(i) * round();
      newest = std::min(newest.value_or(step), step);
    }
  return newest.value_or(boundaries_.empty() ? 0 : boundaries_.rbegin()->first);
}

std::string RankCheckpoints::await_written() {
  return writing_.valid() ? writing_.get() : "";
}

void RankCheckpoints::settle() {
  const std::string error = await_written();
  if (!error.empty() && stopped_) throw Error(error);
  if (!error.empty()) troubles_.add(error);
  files_.keep_newest(wire_->unwritten());
}

}  // namespace duplex::tools
