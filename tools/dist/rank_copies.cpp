#include "tools/dist/rank_copies.h"

#include <algorithm>
#include <set>
#include <utility>

#include "layers/checkpoint.h"
#include "tools/dist/rank_checkpoints.h"

namespace duplex::tools {
namespace {

/// Where the network is cut, no other rank has the weights of a rank's part.
bool is_kept(const DistSpec& spec, int owner) {
  if (spec.parallel.cuts()) return false;
  return !spec.workers_keep_state() || !spec.mesh.topology.is_worker(owner);
}

int keeper_of_own(const DistSpec& spec) {
  return is_kept(spec, spec.rank()) ? keepers_of(spec).of(spec.rank()) : -1;
}

}  // namespace

net::Keepers keepers_of(const DistSpec& spec) {
  std::vector<std::string> hosts;
  for (const net::Address& address : spec.mesh.addresses) hosts.push_back(address.host);
  return {spec.mesh.topology, hosts};
}

std::vector<int> kept_by(const DistSpec& spec, int rank) {
  std::vector<int> kept = keepers_of(spec).owners_of(rank);
  kept.erase(
      std::remove_if(kept.begin(), kept.end(), [&](int owner) { return !is_kept(spec, owner); }),
      kept.end());
  return kept;
}

RankCopies::RankCopies(const DistSpec& spec, const HostParameters& host, const net::ShardMap& map)
    : spec_(spec),
      host_(host),
      map_(map),
      kept_(kept_by(spec, spec.rank())),
      keeper_(keeper_of_own(spec)),
      rounded_(!net::is_exact(spec.parallel.wire.weights)) {
  // A worker that averages weights has the optimiser's state itself.
  if (spec.parallel.average == 0) states_ = spec.training.optimiser.state_names();
}

void RankCopies::prepare(const std::vector<StateArray>& added, net::ExchangeSpec& exchange) {
  for (const StateArray& array : added) added_.emplace_back(array.name, array.shape);
  for (const int owner : kept_) inbox_->expect(owner, state_values(owner));
  exchange.state_inbox = inbox_;
}

/// This comes over the wire of an owner's part.
std::size_t RankCopies::state_values(int owner) const {
  std::size_t values = (states_.size() + (rounded_ ? 1 : 0)) * map_.elements_of(owner);
  if (spec_.mesh.topology.is_worker(owner))
    for (const auto& [name, shape] : added_) values += static_cast<std::size_t>(shape.elements());
  return values;
}

void RankCopies::send(net::ParameterExchange& wire, std::uint64_t steps,
                      const std::vector<StateArray>& arrays) const {
  if (keeper_ < 0) return;
  std::set<std::string> weights;
  for (std::size_t i = 0; i < map_.chunks(); ++i)
    if (map_[i].owner == spec_.rank())
      weights.insert(name_of(map_[i], {host_.spans()[map_[i].parameter].name, 0}));
  std::vector<net::StateValues> values;
  for (const StateArray& array : arrays)
    if (rounded_ || weights.count(array.name) == 0)
      values.push_back({static_cast<std::size_t>(array.shape.elements()), array.get});
  wire.send_state(keeper_, steps, std::move(values));
}

RankCopies::Copy RankCopies::copy_of(int owner) const {
  std::vector<StateArray> weights;
  for (std::size_t i = 0; i < map_.chunks(); ++i) {
    const net::Chunk& chunk = map_[i];
    if (chunk.owner != owner) continue;
    const Span& span = host_.spans()[chunk.parameter];
    weights.push_back(
        {name_of(chunk, {span.name, 0}),
         Shape{static_cast<std::int64_t>(chunk.count)},
         [&](float* to) { std::copy_n(span.weights + chunk.offset, chunk.count, to); },
         {}});
  }
  return {owner, rounded_ ? weights : copies_of(weights)};  // These are not the owner's.
}

std::vector<RankCopies::Copy> RankCopies::copies() const {
  std::vector<Copy> all;
  for (const int owner : kept_) all.push_back(copy_of(owner));
  return all;
}

/// The owner's part, in the order of its own file. `state` has what is no weights, in that order.
std::vector<StateArray> RankCopies::whole(const Copy& copy, std::vector<float> state) const {
  const auto held = std::make_shared<const std::vector<float>>(std::move(state));
  std::size_t next = 0;
  std::vector<StateArray> arrays;
  const auto add = [&](const std::string& name, const Shape& shape) {
    const auto count = static_cast<std::size_t>(shape.elements());
    const std::size_t from = std::exchange(next, next + count);
    arrays.push_back(
        {name, shape, [=](float* to) { std::copy_n(held->data() + from, count, to); }, {}});
  };
  if (spec_.mesh.topology.is_worker(copy.owner))
    for (const auto& [name, shape] : added_) add(name, shape);
  for (const StateArray& weights : copy.weights) {
    if (rounded_)
      add(weights.name, weights.shape);
    else
      arrays.push_back(weights);
    for (const std::string& each : states_)
      add(optimiser_prefix + each + "." + weights.name, weights.shape);
  }
  return arrays;
}

std::string RankCopies::write(const CheckpointFiles& files, std::uint64_t steps,
                              const std::vector<Copy>& copies,
                              const CheckpointFiles::Metadata& metadata) const {
  std::string errors;
  for (const Copy& copy : copies) {
    try {
      std::optional<std::vector<float>> state = inbox_->take(copy.owner, steps);
      if (!state) continue;
      const std::vector<StateArray> arrays = whole(copy, std::move(*state));
      if (arrays.empty()) continue;  // The owner holds nothing, and writes nothing.
      CheckpointFiles::Metadata said = metadata;
      said["rank"] = std::to_string(copy.owner);
      files.write_copy(steps, copy.owner, arrays, said);
    } catch (const std::exception& error) {
      errors += (errors.empty() ? "" : "; ") + std::string(error.what());
    }
  }
  return errors;
}

void RankCopies::rescue(
    const net::ParameterExchange& wire,
    const std::function<void(std::uint64_t round, const Copy& copy)>& write) const {
  if (!states_.empty() || rounded_) return;  // Something of the part is at its owner alone.
  for (const int owner : kept_) {
    std::optional<std::uint64_t> round;
    bool same = true;
    for (std::size_t i = 0; i < map_.chunks() && same; ++i) {
      if (map_[i].owner != owner) continue;
      const auto here = wire.step_of_weights(i);
      same = here && round.value_or(*here) == *here;
      if (same) round = here;
    }
    if (!same || !round) continue;
    const Copy copy = copy_of(owner);
    if (finite(copy.weights)) write(*round, copy);
  }
}

void RankCopies::write_rescued(const CheckpointFiles& files, std::uint64_t steps, const Copy& copy,
                               const CheckpointFiles::Metadata& metadata) const {
  CheckpointFiles::Metadata said = metadata;
  said["rank"] = std::to_string(copy.owner);
  said["rescued"] = "yes";
  if (spec_.mesh.topology.is_worker(copy.owner) && !added_.empty()) said["partial"] = "yes";
  files.write_copy(steps, copy.owner, copy.weights, said);
}

}  // namespace duplex::tools
