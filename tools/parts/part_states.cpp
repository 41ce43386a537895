#include "tools/parts/part_states.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/error.h"

namespace duplex::tools {
namespace {

using Values = std::shared_ptr<const std::vector<float>>;

std::vector<float> statistics_in(Network& network) {
  std::vector<float> values;
  for (const StateArray& array : CutPart::statistics_of(network)) {
    const std::size_t from = values.size();
    values.resize(from + static_cast<std::size_t>(array.shape.elements()));
    array.get(values.data() + from);
  }
  return values;
}

/// Returns the weights of a chunk that this rank owns.
std::vector<float> weights_of(const net::ParameterExchange& wire, std::size_t chunk,
                              std::uint64_t steps) {
  std::optional<net::ChunkState> state = wire.state_of(chunk, steps);
  if (!state)
    throw net::ProtocolError("a test after " + std::to_string(steps) +
                             " steps is due, and not all chunks of this rank are of them");
  return std::move(state->weights);
}

}  // namespace

void PartStates::prepare(const net::ShardMap& map, net::ExchangeSpec& exchange) {
  if (rank_ != 0) return;
  const std::vector<std::size_t> statistics = cut_.statistics_by_rank();
  for (int owner = 1; owner < ranks_; ++owner)
    inbox_->expect(owner, map.elements_of(owner) + statistics[static_cast<std::size_t>(owner)]);
  exchange.state_inbox = inbox_;
}

void PartStates::send(net::ParameterExchange& wire, std::uint64_t steps, Network& network) const {
  wire.await_state_sent();
  std::vector<net::StateValues> arrays;
  const auto add = [&arrays](std::vector<float> copied) {
    if (copied.empty()) return;
    const Values held = std::make_shared<const std::vector<float>>(std::move(copied));
    arrays.push_back(
        {held->size(), [held](float* to) { std::copy(held->begin(), held->end(), to); }});
  };
  const net::ShardMap& map = wire.shards();
  for (std::size_t i = 0; i < map.chunks(); ++i)
    if (map[i].owner == rank_) add(weights_of(wire, i, steps));
  add(statistics_in(network));
  if (!arrays.empty()) wire.send_state(0, steps, std::move(arrays));
}

/// A rank that waits here gets on as long as something comes.
std::vector<float> PartStates::await(net::ParameterExchange& wire, int owner,
                                     std::uint64_t steps) const {
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint64_t parts = 0; !inbox_->wait(owner, steps, std::chrono::milliseconds(50));) {
    if (std::exchange(parts, inbox_->parts()) != inbox_->parts()) wire.progress_made();
    wire.check_wait(owner, "its weights after " + std::to_string(steps) + " steps, to test them",
                    begin);
  }
  std::optional<std::vector<float>> values = inbox_->take(owner, steps);
  if (values) return std::move(*values);
  wire.await_state_sent();  // It throws why the run has ended.
  throw Error("the run has ended before rank " + std::to_string(owner) + " has sent its part");
}

PartStates::Whole PartStates::take(net::ParameterExchange& wire, std::uint64_t steps,
                                   const HostParameters& host, Network& network) {
  const HostParameters& whole = cut_.whole_weights(host);
  const net::ShardMap& map = wire.shards();
  std::vector<std::vector<float>> statistics{statistics_in(network)};
  for (int owner = 0; owner < ranks_; ++owner) {
    const std::vector<float> values = owner == 0 ? std::vector<float>() : await(wire, owner, steps);
    std::size_t next = 0;
    for (std::size_t i = 0; i < map.chunks(); ++i) {
      const net::Chunk& chunk = map[i];
      if (chunk.owner != owner) continue;
      const PartSpan& span = cut_.spans()[chunk.parameter];
      float* to = whole.spans()[span.parameter].weights + span.first + chunk.offset;
      if (owner == 0) {
        const std::vector<float> own = weights_of(wire, i, steps);
        std::copy(own.begin(), own.end(), to);
      } else {
        std::copy_n(values.data() + std::exchange(next, next + chunk.count), chunk.count, to);
      }
    }
    if (owner > 0)
      statistics.emplace_back(values.begin() + static_cast<std::ptrdiff_t>(next), values.end());
  }
  const auto of_rank = [&](int rank, std::size_t) {
    return statistics[static_cast<std::size_t>(rank)];
  };
  return {whole, cut_.whole_statistics(of_rank)};
}

}  // namespace duplex::tools
