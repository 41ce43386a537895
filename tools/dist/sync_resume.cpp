// How the ranks of a synchronous training find a checkpoint that they go on from, and load it.
#include <algorithm>
#include <cstdlib>
#include <set>
#include <tuple>

#include "core/error.h"
#include "core/files/safetensors.h"
#include "layers/checkpoint.h"
#include "tools/checkpoint/state_pieces.h"
#include "tools/dist/sync_checkpoints.h"

namespace duplex::tools {
namespace {

/// Returns whether a file has arrays of all of these names, and no others.
bool has_just(const std::string& path, const std::vector<StateArray>& arrays) {
  std::set<std::string> names;
  const SafetensorsFile file(path);
  for (const SafetensorsEntry& entry : file.entries()) names.insert(entry.name);
  return names.size() == arrays.size() &&
         std::all_of(arrays.begin(), arrays.end(),
                     [&](const StateArray& array) { return names.count(array.name) > 0; });
}

/// Adds the files of a checkpoint, and the ranks that had no part of it.
void add_held(std::vector<net::HeldFiles>& all, const Checkpoint& checkpoint) {
  const auto add = [&](const net::HeldFiles& files) {
    net::HeldFiles* last = all.empty() ? nullptr : &all.back();
    if (last != nullptr && last->point == files.point && last->copies == files.copies &&
        last->partial == files.partial && last->none == files.none && last->last + 1 == files.first)
      last->last = files.last;
    else
      all.push_back(files);
  };
  net::HeldFiles held;
  held.point = {checkpoint.steps, checkpoint.samples, static_cast<std::uint32_t>(checkpoint.ranks)};
  held.cut = checkpoint.metadata.count(cut_key) > 0;
  for (const bool copies : {false, true})
    for (const CheckpointFile& file : checkpoint.files) {
      if (file.copy != copies) continue;
      held.first = held.last = file.rank;
      held.copies = copies;
      held.partial = file.partial;
      add(held);
    }
  held.copies = held.partial = false;
  held.none = true;
  const std::set<int> parts = ranks_in(checkpoint.metadata, parts_key);
  for (int rank = 0; rank < checkpoint.ranks && !parts.empty(); ++rank) {
    if (parts.count(rank) > 0) continue;
    held.first = held.last = rank;
    add(held);
  }
}

std::vector<std::string> paths_of(const std::vector<CheckpointFile>& files) {
  std::vector<std::string> paths;
  for (const CheckpointFile& file : files) paths.push_back(file.path);
  return paths;
}

}  // namespace

net::ResumeOffer SyncCheckpoints::offer() {
  net::ResumeOffer offer;
  offer.any = holds_nothing();
  offer.never = !offer.any && files_.has_only_begun();
  offered_ = files_.whole();
  const Arrays arrays = wanted_arrays();
  for (const Checkpoint& checkpoint : offered_) {
    offer.complete = offer.complete || !checkpoint.rescued;
    if (checkpoint.ranks != spec_.mesh.topology.size) require_shareable(checkpoint);
    const StatePieces pieces(paths_of(checkpoint.files));
    const bool own = checkpoint.own && !checkpoint.files.front().partial;
    if (spec_.workers_keep_state()
            ? own
            : std::all_of(arrays.begin(), arrays.end(),
                          [&](const auto& array) { return pieces.has(array); }))
      offer.points.push_back(
          {checkpoint.steps, checkpoint.samples, static_cast<std::uint32_t>(checkpoint.ranks)});
  }
  return offer;
}

std::optional<net::FileSharing> SyncCheckpoints::sharing(bool statistics) {
  net::FileSharing sharing;
  for (const Checkpoint& checkpoint : offered_) add_held(sharing.held, checkpoint);
  std::vector<std::size_t> counts;
  for (const Span& span : spans_.spans) counts.push_back(span.count);
  needs_.emplace(spec_, std::move(counts), statistics);
  sharing.needs = [this](const net::ResumePoint& point, int rank, const net::HeldParts& parts) {
    return needs_->of(point, rank, parts);
  };
  sharing.path = [this](const net::ResumePoint& point, int rank, bool copy) {
    return files_.path(point.steps, rank, copy);
  };
  sharing.received = [this](const net::ResumePoint& point, int rank) {
    received_.push_back(files_.received(point.steps, rank));
  };
  sharing.log = spec_.mesh.log;
  return sharing;
}

/// Throws Error if only as many ranks can go on from a checkpoint.
void SyncCheckpoints::require_shareable(const Checkpoint& checkpoint) const {
  if (!spec_.workers_keep_state()) return;
  throw Error("--resume: " + checkpoint.path() + " is of " + std::to_string(checkpoint.ranks) +
                  " ranks, and this run has " + std::to_string(spec_.mesh.topology.size) +
                  "; with --average every worker's optimiser has a state of its own, so the number "
                  "must stay the same",
              Exit::usage);
}

/// The files of a checkpoint that are here by now, this rank's own first, then in the order of
/// their ranks.
std::vector<CheckpointFile> SyncCheckpoints::files_of(const net::ResumePoint& point) const {
  std::vector<CheckpointFile> files = received_;
  for (const Checkpoint& each : offered_)
    if (each.steps == point.steps && each.ranks == static_cast<int>(point.ranks))
      files.insert(files.end(), each.files.begin(), each.files.end());
  const bool same = static_cast<int>(point.ranks) == spec_.mesh.topology.size;
  std::stable_sort(files.begin(), files.end(),
                   [&](const CheckpointFile& a, const CheckpointFile& b) {
                     const auto place = [&](const CheckpointFile& file) {
                       return std::tuple(!same || file.rank != spec_.rank(), file.rank, file.copy);
                     };
                     return place(a) < place(b);
                   });
  return files;
}

void SyncCheckpoints::load_pieces(const std::vector<CheckpointFile>& files, const Arrays& arrays) {
  const StatePieces pieces(paths_of(files));
  for (const StateArray& array : arrays) pieces.load(array);
  // The bytes of ranks that are no more count to one that is.
  const int size = spec_.mesh.topology.size;
  std::set<int> counted;
  for (const CheckpointFile& file : files) {
    if (file.rank % size != spec_.rank() || !counted.insert(file.rank).second) continue;
    count_bytes(SafetensorsFile(file.path).metadata());
  }
}

net::ResumePoint SyncCheckpoints::go_on_from(const net::ResumePoint& point,
                                             net::ExchangeSpec& exchange) {
  const Arrays arrays = wanted_arrays();
  if (!holds_nothing()) {
    const std::vector<CheckpointFile> files = files_of(point);
    if (files.empty())
      throw Error("--resume: this rank has offered no checkpoint of " +
                  std::to_string(point.steps) + " steps");
    const CheckpointFile& first = files.front();
    // A network that was cut in another way has other pieces on each rank.
    if (static_cast<int>(point.ranks) == spec_.mesh.topology.size && first.rank == spec_.rank() &&
        !first.partial && has_just(first.path, arrays))
      count_bytes(load_state(first.path, arrays, "this rank's part of the training"));
    else
      load_pieces(files, arrays);
  }
  files_.remove_after(point.steps);
  clock_.made(point.steps);
  taken_ = point.steps;
  from_ = point;
  exchange.first_step = point.steps / round();
  exchange.initial_state = initial_state();
  return point;
}

}  // namespace duplex::tools
