// How a rank of an asynchronous training goes on from a checkpoint.
#include <algorithm>
#include <filesystem>
#include <utility>

#include "core/error.h"
#include "layers/checkpoint.h"
#include "tools/checkpoint/state_pieces.h"
#include "tools/dist/async_checkpoints.h"
#include "tools/dist/chunk_records.h"

namespace duplex::tools {
namespace {

std::string text_in(const CheckpointFiles::Metadata& metadata, const std::string& key) {
  const auto entry = metadata.find(key);
  return entry == metadata.end() ? "" : entry->second;
}

/// When a worker that has lost its server had got the weights that it keeps; others say nothing.
const std::string kept_key = "kept_at";

}  // namespace

net::ResumeOffer AsyncCheckpoints::offer() {
  net::ResumeOffer offer;
  offer.never = files_.has_only_begun();
  offered_ = files_.whole();
  require_as_many_ranks();
  leave_own();
  for (const Checkpoint& checkpoint : offered_) offer.points.push_back(point_of(checkpoint));
  if (!trains())
    if (auto kept = kept_by_workers()) offer.points.push_back(std::move(*kept));
  offer.complete = std::any_of(
      offer.points.begin(), offer.points.end(),
      [](const net::ResumePoint& point) { return !point.kept || net::keeps_training(point); });
  return offer;
}

/// Leaves those out of offered_ that have no part of this rank's. In a folder that ranks share,
/// others may have written newer ones without it.
void AsyncCheckpoints::leave_own() {
  offered_.erase(std::remove_if(offered_.begin(), offered_.end(),
                                [](const Checkpoint& each) { return !each.own; }),
                 offered_.end());
}

void AsyncCheckpoints::require_as_many_ranks() const {
  if (offered_.empty() || offered_.front().ranks == spec_.mesh.topology.size) return;
  throw Error("--resume: " + offered_.front().path() + " is of " +
                  std::to_string(offered_.front().ranks) + " ranks, and this run has " +
                  std::to_string(spec_.mesh.topology.size) +
                  "; with --sync none every worker goes on with a step of its own, so the number "
                  "must stay the same",
              Exit::usage);
}

net::ResumePoint AsyncCheckpoints::point_of(const Checkpoint& checkpoint) const {
  net::ResumePoint point;
  point.steps = checkpoint.steps;
  point.samples = number_in(checkpoint.metadata, "run");
  point.ranks = static_cast<std::uint32_t>(checkpoint.ranks);
  point.kept = checkpoint.metadata.count(kept_key) != 0;
  if (point.kept && trains()) {
    point.positions.assign(workers(), net::ResumePoint::no_position);
    point.positions[own_number()] = number_in(checkpoint.metadata, "step");
  }
  if (owns()) {
    const auto records = parse_records(text_in(checkpoint.metadata, "applied"), map_.chunks(),
                                       static_cast<int>(workers()));
    point.positions = positions_of(records);
    if (!trains()) point.ends = ends_of(records);
  }
  point.absent = ranks_in(checkpoint.metadata, "absent");
  return point;
}

/// Returns the name, common to all ranks, of a checkpoint that a worker kept without its server.
net::ResumePoint AsyncCheckpoints::kept_point(const Checkpoint& checkpoint) const {
  net::ResumePoint point;
  point.steps = checkpoint.steps;
  point.samples = number_in(checkpoint.metadata, "run");
  point.ranks = static_cast<std::uint32_t>(spec_.mesh.topology.size);
  point.kept = true;
  return point;
}

/// The newest checkpoint that all workers have kept when they lost this server, if their files are
/// here.
std::optional<net::ResumePoint> AsyncCheckpoints::kept_by_workers() {
  kept_ = files_.of_other_ranks(kept_key);
  std::optional<net::ResumePoint> newest;
  for (const Checkpoint& one : kept_) {
    net::ResumePoint point = kept_point(one);
    for (const int worker : spec_.mesh.topology.workers()) {
      // They come newest first, so that this is the worker's last one.
      const auto own = std::find_if(kept_.begin(), kept_.end(), [&](const Checkpoint& file) {
        return kept_point(file) == point && file.files.front().rank == worker;
      });
      if (own == kept_.end()) break;
      point.steps = std::max(point.steps, own->steps);
      point.positions.push_back(number_in(own->metadata, "step"));
    }
    if (point.positions.size() == workers() && (!newest || newest->steps < point.steps))
      newest = point;
  }
  return newest;
}

std::optional<net::FileSharing> AsyncCheckpoints::sharing(bool) {
  if (!spec_.parallel.central()) return std::nullopt;
  net::FileSharing sharing;
  const auto hold = [&](const Checkpoint& checkpoint) {
    const int rank = checkpoint.files.front().rank;
    sharing.held.push_back({kept_point(checkpoint), rank, rank, false, false});
  };
  for (const Checkpoint& each : offered_)
    if (trains() && each.metadata.count(kept_key) != 0) hold(each);
  for (const Checkpoint& each : kept_) hold(each);
  sharing.needs = [this](const net::ResumePoint& point, int rank, const net::HeldParts&) {
    if (!point.kept || rank != spec_.mesh.topology.server)
      return std::vector<net::PartNeed>{{rank, true}};
    std::vector<net::PartNeed> needs;
    for (const int worker : spec_.mesh.topology.workers()) needs.push_back({worker, true});
    return needs;
  };
  sharing.path = [this](const net::ResumePoint& point, int rank, bool) {
    for (const Checkpoint& each : offered_)
      if (trains() && point_of(each) == point) return each.path();
    return files_.path(point.steps, rank, false);
  };
  sharing.received = [this](const net::ResumePoint& point, int rank) {
    received_.push_back(files_.path(point.steps, rank, false));
    kept_.push_back(files_.received_from(received_.back(), rank));
  };
  sharing.log = spec_.mesh.log;
  return sharing;
}

net::ResumePoint AsyncCheckpoints::go_on_from(const net::ResumePoint& point,
                                              net::ExchangeSpec& exchange) {
  if (point.late) return come_back(point, exchange);
  const auto offered = std::find_if(offered_.begin(), offered_.end(), [&](const Checkpoint& each) {
    return point_of(each) == point;
  });
  const Checkpoint* own = offered == offered_.end() ? nullptr : &*offered;
  if (point.positions.size() != workers())
    throw Error("--resume: the other ranks tell of " + std::to_string(point.positions.size()) +
                " workers, and there are " + std::to_string(workers()));
  if (!owns())
    load_statistics(own, point);
  else if (point.kept && !trains())
    load_kept(point, exchange);
  else if (own != nullptr)
    load(*own, exchange);
  else
    throw Error("--resume: this rank has offered no checkpoint " + std::to_string(point.steps));
  files_.remove_after(point.steps);
  taken_ = point.steps;
  from_ = point;
  from_.steps = trains() ? point.positions[own_number()] : 0;
  from_.samples = from_.steps * spec_.step_samples();
  if (own != nullptr && number_in(own->metadata, "step") > from_.steps && trains())
    throw Error("--resume: " + own->path() + " is of step " + own->metadata.at("step") +
                ", which the owners of the weights have not come to: it is of another checkpoint");
  exchange.first_steps = point.positions;
  exchange.ends = point.ends;
  exchange.last_checkpoint = point.steps;
  exchange.first_step =
      trains() ? from_.steps : *std::min_element(point.positions.begin(), point.positions.end());
  return from_;
}

/// A worker that was lost by a run which goes on: it takes the newest of its parts, and counts
/// checkpoints as the server does.
net::ResumePoint AsyncCheckpoints::come_back(const net::ResumePoint& point,
                                             net::ExchangeSpec& exchange) {
  if (offered_.empty()) offered_ = files_.whole();
  leave_own();
  taken_ = point.steps;
  load_statistics(offered_.empty() ? nullptr : &offered_.front(), point);
  from_ = point;
  from_.steps = exchange.first_step = point.positions.at(own_number());
  from_.samples = from_.steps * spec_.step_samples();
  return from_;
}

/// An owner's part, and a worker's on the same rank.
void AsyncCheckpoints::load(const Checkpoint& checkpoint, net::ExchangeSpec& exchange) {
  const auto metadata =
      load_state(checkpoint.path(), wanted_arrays(), "this rank's part of the training");
  count_bytes(metadata);
  exchange.records =
      parse_records(text_in(metadata, "applied"), map_.chunks(), static_cast<int>(workers()));
  exchange.staleness_before = parse_staleness(text_in(metadata, "staleness"), exchange.records);
  exchange.initial_state = initial_state();
}

/// The part of a worker without chunks. Where the run had gone on without it, it takes the newest
/// that it has.
void AsyncCheckpoints::load_statistics(const Checkpoint* own, const net::ResumePoint& point) {
  for (const Checkpoint& each : offered_)
    if (own == nullptr && each.steps <= point.steps) own = &each;
  if (own == nullptr) {
    if (added_.empty()) return;
    spec_.mesh.log("has no checkpoint of its own, and goes on where the server says");
    return;
  }
  count_bytes(load_state(own->path(), added_, "this rank's part of the training", kept_prefix));
}

/// The server's part where it was lost: the weights that a worker got last. The optimiser begins
/// anew.
void AsyncCheckpoints::load_kept(const net::ResumePoint& point, net::ExchangeSpec& exchange) {
  const Checkpoint* newest = nullptr;
  for (const Checkpoint& each : kept_)
    if (kept_point(each) == point &&
        (newest == nullptr ||
         number_in(each.metadata, kept_key) > number_in(newest->metadata, kept_key)))
      newest = &each;
  if (newest == nullptr)
    throw Error("--resume: this server has none of the weights that its workers kept");
  const StatePieces pieces({newest->path()});
  net::ChunkRecord record;
  for (const std::uint64_t position : point.positions) record.applied.emplace_back(position);
  exchange.records.assign(map_.chunks(), record);
  for (std::size_t i = 0; i < map_.chunks(); ++i) {
    const net::Chunk& chunk = map_[i];
    const Span& span = spans_.spans[chunk.parameter];
    pieces.load(
        {kept_prefix + name_of(chunk, spans_.places[chunk.parameter]),
         Shape{static_cast<std::int64_t>(chunk.count)},
         {},
         [&](const float* from) { std::copy_n(from, chunk.count, span.weights + chunk.offset); }});
  }
  spec_.mesh.log("had no time for a checkpoint of its own: takes the weights that " +
                 newest->path() + " has, and the optimiser begins anew");
  // The workers have these files themselves.
  for (const std::string& path : received_) std::filesystem::remove(path);
  received_.clear();
}

}  // namespace duplex::tools
