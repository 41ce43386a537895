#include "tools/dist/rank_checkpoints.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <system_error>
#include <utility>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "layers/checkpoint.h"
#include "tools/checkpoint/state_pieces.h"
#include "tools/dist/async_checkpoints.h"
#include "tools/dist/sync_checkpoints.h"

namespace duplex::tools {
namespace {

net::ShardMap map_of(const DistSpec& spec, const StateSpans& spans) {
  std::vector<std::size_t> counts;
  for (const Span& span : spans.spans) counts.push_back(span.count);
  return spec.mesh.topology.shard_map(counts, spec.parallel.shards, spec.exchange().chunk_bytes,
                                      spans.members);
}

/// A copy of an array, which the result holds.
StateArray copied(std::string name, const Shape& shape, std::vector<float> values) {
  const auto held = std::make_shared<const std::vector<float>>(std::move(values));
  return {
      std::move(name), shape, [held](float* to) { std::copy(held->begin(), held->end(), to); }, {}};
}

/// Gives free memory back to the system. Several threads take turns in copying chunks, and glibc
/// keeps what is freed in the heap of the thread that took it: copies of several checkpoints would
/// lie there side by side.
void give_memory_back() {
#ifdef __GLIBC__
  ::malloc_trim(0);
#endif
}

}  // namespace

std::vector<StateArray> copies_of(const std::vector<StateArray>& arrays) {
  std::vector<StateArray> copies;
  for (const StateArray& array : arrays) {
    std::vector<float> values(static_cast<std::size_t>(array.shape.elements()));
    array.get(values.data());
    copies.push_back(copied(array.name, array.shape, std::move(values)));
  }
  return copies;
}

bool finite(const std::vector<StateArray>& arrays) {
  std::vector<float> values;
  return std::all_of(arrays.begin(), arrays.end(), [&](const StateArray& array) {
    values.resize(static_cast<std::size_t>(array.shape.elements()));
    array.get(values.data());
    return all_finite(values.data(), values.size());
  });
}

StateSpans StateSpans::of(const HostParameters& host) {
  StateSpans spans;
  for (const Span& span : host.spans()) {
    spans.spans.push_back(span);
    spans.places.push_back({span.name, 0});
  }
  return spans;
}

std::string name_of(const net::Chunk& chunk, const StateSpans::Place& place) {
  const std::size_t from = place.first + chunk.offset;
  return piece_name(place.parameter, from, from + chunk.count);
}

std::uint64_t number_in(const CheckpointFiles::Metadata& metadata, const std::string& key) {
  const auto entry = metadata.find(key);
  return entry == metadata.end() ? 0 : std::strtoull(entry->second.c_str(), nullptr, 10);
}

std::string text_of(const std::set<int>& ranks) {
  std::string text;
  for (const int rank : ranks) text += (text.empty() ? "" : ",") + std::to_string(rank);
  return text;
}

std::set<int> ranks_in(const CheckpointFiles::Metadata& metadata, const std::string& key) {
  std::set<int> ranks;
  const auto entry = metadata.find(key);
  std::istringstream text(entry == metadata.end() ? "" : entry->second);
  for (std::string rank; std::getline(text, rank, ',');) ranks.insert(std::atoi(rank.c_str()));
  return ranks;
}

std::unique_ptr<RankCheckpoints> make_checkpoints(const DistSpec& spec, CheckpointFiles files,
                                                  HostParameters& host, StateSpans spans,
                                                  Troubles& troubles) {
  if (spec.parallel.sync == net::Sync::none)
    return std::make_unique<AsyncCheckpoints>(spec, std::move(files), std::move(spans), troubles);
  return std::make_unique<SyncCheckpoints>(spec, std::move(files), host, std::move(spans),
                                           troubles);
}

RankCheckpoints::RankCheckpoints(const DistSpec& spec, CheckpointFiles files, StateSpans spans,
                                 Troubles& troubles)
    : spec_(spec),
      spans_(std::move(spans)),
      troubles_(troubles),
      files_(std::move(files)),
      clock_(spec.training.checkpoints, 0),
      map_(map_of(spec, spans_)) {}

RankCheckpoints::~RankCheckpoints() {
  if (writing_.valid()) writing_.wait();
}

void RankCheckpoints::add(std::vector<StateArray> arrays) {
  for (StateArray& array : arrays) added_.push_back(std::move(array));
}

bool RankCheckpoints::is_over_with(std::uint64_t number) const {
  std::error_code absent;
  return wire_->finished() &&
         (holds_nothing() || std::filesystem::is_regular_file(files_.path(number), absent));
}

void RankCheckpoints::note_begin() const {
  if (wanted() && !holds_nothing()) files_.note_begin();
}

RankCheckpoints::Arrays RankCheckpoints::wanted_arrays() {
  const std::vector<std::string> states = optimiser_names();
  optimiser_.assign(map_.chunks(), {});
  Arrays arrays = added_;
  for (std::size_t i = 0; i < map_.chunks(); ++i) {
    const net::Chunk& chunk = map_[i];
    if (chunk.owner != spec_.rank()) continue;
    const Span& span = spans_.spans[chunk.parameter];
    const auto count = static_cast<std::int64_t>(chunk.count);
    const std::string name = name_of(chunk, spans_.places[chunk.parameter]);
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

std::function<void(std::size_t, const std::vector<float*>&)> RankCheckpoints::initial_state() {
  return [this](std::size_t chunk, const std::vector<float*>& state) {
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

std::optional<RankCheckpoints::Arrays> RankCheckpoints::arrays_of(
    std::uint64_t step, Arrays more, std::vector<net::ChunkRecord>* records) const {
  const std::vector<std::string> states = optimiser_names();
  if (records != nullptr) records->assign(map_.chunks(), {});
  Arrays arrays = std::move(more);
  for (std::size_t i = 0; i < map_.chunks(); ++i) {
    const net::Chunk& chunk = map_[i];
    if (chunk.owner != spec_.rank()) continue;
    std::optional<net::ChunkState> state = wire_->state_of(i, step);
    if (!state) return std::nullopt;
    const Shape shape{static_cast<std::int64_t>(chunk.count)};
    const std::string name = name_of(chunk, spans_.places[chunk.parameter]);
    arrays.push_back(copied(name, shape, std::move(state->weights)));
    for (std::size_t k = 0; k < states.size(); ++k)
      arrays.push_back(
          copied(optimiser_prefix + states[k] + "." + name, shape, std::move(state->optimiser[k])));
    if (records != nullptr) (*records)[i] = {state->step, std::move(state->applied)};
  }
  return arrays;
}

CheckpointFiles::Metadata RankCheckpoints::metadata() const {
  const net::FrameBytes now = wire_->ledger().bytes();
  return {{"rank", std::to_string(spec_.rank())},
          {"bytes_sent", std::to_string(before_.sent + now.sent)},
          {"bytes_received", std::to_string(before_.received + now.received)}};
}

void RankCheckpoints::count_bytes(const CheckpointFiles::Metadata& metadata) {
  before_.sent += number_in(metadata, "bytes_sent");
  before_.received += number_in(metadata, "bytes_received");
}

void RankCheckpoints::start_writing(std::uint64_t number, std::optional<Arrays> arrays,
                                    CheckpointFiles::Metadata said,
                                    std::function<std::string()> then) {
  writing_ =
      std::async(std::launch::async, [this, number, arrays = std::move(arrays),
                                      said = std::move(said), then = std::move(then)]() mutable {
        std::string errors;
        try {
          if (arrays) files_.write(number, *arrays, said);
        } catch (const std::exception& error) {
          errors = error.what();
        }
        arrays.reset();  // What follows may take long.
        give_memory_back();
        const std::string more = then ? then() : "";
        return errors + (errors.empty() || more.empty() ? "" : "; ") + more;
      });
}

bool RankCheckpoints::is_written(std::chrono::milliseconds at_most) const {
  return !writing_.valid() || writing_.wait_for(at_most) == std::future_status::ready;
}

std::string RankCheckpoints::await_written() {
  return writing_.valid() ? writing_.get() : "";
}

void RankCheckpoints::flush() {
  const std::string error = await_written();
  if (!error.empty() && stopped_) throw Error(error);
  if (!error.empty()) troubles_.add(error);
  files_.keep_newest(wire_->unwritten());
}

}  // namespace duplex::tools
