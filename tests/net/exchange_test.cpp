// The whole exchange over real sockets: N ranks train the same weights as one machine would, to the
// bit.
#include "net/exchange/exchange.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <sstream>

#include "tests/net/cluster.h"

namespace duplex::net {
namespace {

using Weights = std::vector<std::vector<float>>;

/// Small tensors, one of many chunks, odd sizes, and one of a single element.
const std::vector<std::size_t> counts{1728, 64, 70000, 1, 33333, 10};

bool same_bits(const Weights& a, const Weights& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t p = 0; p < a.size(); ++p)
    if (a[p].size() != b[p].size() ||
        std::memcmp(a[p].data(), b[p].data(), a[p].size() * sizeof(float)) != 0)
      return false;
  return true;
}

struct Case {
  ServerMode mode;
  int size;
  int server;
  Shards shards;
  OptimiserSpec optimiser;
  std::size_t chunk_bytes;
};

OptimiserSpec momentum() {
  OptimiserSpec spec;
  spec.momentum = 0.9F;
  spec.weight_decay = 1e-3F;
  return spec;
}
OptimiserSpec adam() {
  OptimiserSpec spec;
  spec.kind = OptimiserKind::adam;
  return spec;
}

class Exchanged : public testing::TestWithParam<Case> {};

TEST_P(Exchanged, EqualsOneMachineBitForBit) {
  const Case& c = GetParam();
  const Topology topology{c.mode, c.size, c.server};
  constexpr std::uint64_t steps = 5;
  LearningRate rate;
  rate.base = 0.05;
  rate.boundaries = {3};
  const int workers = static_cast<int>(topology.workers().size());
  const Weights expected = train_alone(counts, workers, steps, c.optimiser, rate);

  std::vector<Weights> trained(static_cast<std::size_t>(c.size));
  std::vector<std::string> reports;
  const auto outcomes = run_ranks(topology, [&](int rank, const MeshSpec& mesh, Listener listener) {
    Replica replica(counts);
    // Only the owners' first weights count.
    if (topology.is_owner(rank)) replica.set_initial();
    ExchangeSpec spec;
    spec.shards = c.shards;
    spec.chunk_bytes = c.chunk_bytes;
    spec.optimiser = c.optimiser;
    spec.rate = rate;
    ParameterExchange exchange(spec, replica.spans(), Mesh::join(mesh, std::move(listener)));
    if (exchange.is_worker()) {
      const auto workers_of = topology.workers();
      const auto at = std::find(workers_of.begin(), workers_of.end(), rank);
      train(exchange, replica, static_cast<int>(at - workers_of.begin()), steps);
    }
    const auto received = exchange.finish([&] { return "report of " + std::to_string(rank); });
    if (rank == topology.coordinator())
      reports = received;
    else
      EXPECT_TRUE(received.empty());
    trained[static_cast<std::size_t>(rank)] = replica.weights;
  });

  for (int rank = 0; rank < c.size; ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    ASSERT_TRUE(outcomes[r].ok) << "rank " << rank << ": " << outcomes[r].message;
    EXPECT_TRUE(same_bits(trained[r], expected)) << "rank " << rank;
  }
  ASSERT_EQ(reports.size(), static_cast<std::size_t>(c.size));
  for (int rank = 0; rank < c.size; ++rank)
    EXPECT_EQ(reports[static_cast<std::size_t>(rank)], "report of " + std::to_string(rank));
}

std::string case_name(const testing::TestParamInfo<Case>& info) {
  const Case& c = info.param;
  std::ostringstream name;
  name << name_of(c.mode) << c.size << "server" << c.server << name_of(c.shards)
       << (c.optimiser.kind == OptimiserKind::adam ? "adam" : "sgd") << c.chunk_bytes;
  return name.str();
}

INSTANTIATE_TEST_SUITE_P(
    Modes, Exchanged,
    testing::Values(Case{ServerMode::central, 2, 0, Shards::even, {}, 4096},
                    Case{ServerMode::central, 3, 0, Shards::even, momentum(), 65536},
                    Case{ServerMode::central, 3, 2, Shards::even, adam(), 4096},
                    Case{ServerMode::central, 5, 1, Shards::even, momentum(), 1 << 20},
                    Case{ServerMode::distributed, 1, 0, Shards::even, momentum(), 4096},
                    Case{ServerMode::distributed, 2, 0, Shards::even, momentum(), 65536},
                    Case{ServerMode::distributed, 2, 0, Shards::tensors, adam(), 4096},
                    Case{ServerMode::distributed, 3, 0, Shards::even, adam(), 1 << 20},
                    Case{ServerMode::distributed, 4, 0, Shards::tensors, momentum(), 4096},
                    Case{ServerMode::distributed, 5, 0, Shards::even, {}, 4096}),
    case_name);

TEST(Overlap, NewWeightsComeBackWhileBackwardStillRuns) {
  // Every worker pushes the last layer's gradient and then, in the middle of its backward, waits
  // for that layer's next weights. Only an exchange that sends, updates and returns at once gets
  // past it.
  for (const ServerMode mode : {ServerMode::central, ServerMode::distributed}) {
    const Topology topology{mode, 3, 0};
    const auto outcomes =
        run_ranks(topology, [&](int rank, const MeshSpec& mesh, Listener listener) {
          Replica replica(counts);
          if (topology.is_owner(rank)) replica.set_initial();
          ParameterExchange exchange({}, replica.spans(), Mesh::join(mesh, std::move(listener)));
          for (std::uint64_t step = 0; step < 6 && exchange.is_worker(); ++step) {
            exchange.begin(step);
            for (std::size_t p = 0; p < counts.size(); ++p) exchange.await(p);
            for (std::size_t p = counts.size(); p-- > 0;) {
              replica.compute(p, rank, step);
              const std::vector<float> before = replica.weights[p];
              exchange.push(p);
              exchange.await(p);
              EXPECT_NE(replica.weights[p], before);
            }
            exchange.end();
          }
          exchange.finish();
        });
    for (const Outcome& outcome : outcomes) EXPECT_TRUE(outcome.ok) << outcome.message;
  }
}

TEST(Exchange, TheFirstWeightsAreTheOwners) {
  // Two ranks have different first weights; each must end up with the owners'.
  std::vector<Weights> started(2);
  const auto outcomes = run_ranks(
      {ServerMode::distributed, 2, 0}, [&](int rank, const MeshSpec& mesh, Listener listener) {
        Replica replica(counts);
        for (auto& values : replica.weights)
          std::fill(values.begin(), values.end(), static_cast<float>(rank + 1));
        ParameterExchange exchange({}, replica.spans(), Mesh::join(mesh, std::move(listener)));
        exchange.finish();
        started[static_cast<std::size_t>(rank)] = replica.weights;
      });
  for (const Outcome& outcome : outcomes) ASSERT_TRUE(outcome.ok) << outcome.message;
  EXPECT_TRUE(same_bits(started[0], started[1]));
  const ShardMap map = ShardMap::distributed(counts, 2, Shards::even);
  for (std::size_t i = 0; i < map.chunks(); ++i)
    EXPECT_EQ(started[0][map[i].parameter][map[i].offset], static_cast<float>(map[i].owner + 1));
}

TEST(Topology, WhoServesWhomAndWhoConnects) {
  const Topology central{ServerMode::central, 4, 2};
  EXPECT_EQ(central.workers(), (std::vector<int>{0, 1, 3}));
  EXPECT_EQ(central.peers_of(2), (std::vector<int>{0, 1, 3}));
  EXPECT_EQ(central.peers_of(3), (std::vector<int>{2}));
  EXPECT_EQ(central.coordinator(), 2);
  for (int rank = 0; rank < 4; ++rank)
    EXPECT_EQ(central.worker_number(rank), (std::array{0, 1, -1, 2}.at(rank)));
  const Topology distributed{ServerMode::distributed, 3, 0};
  EXPECT_EQ(distributed.workers(), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(distributed.peers_of(1), (std::vector<int>{0, 2}));
  EXPECT_EQ(distributed.coordinator(), 0);
  EXPECT_EQ(distributed.worker_number(2), 2);
  for (const Topology& topology : {central, distributed})
    for (int a = 0; a < topology.size; ++a)
      for (const int b : topology.peers_of(a)) {
        EXPECT_NE(topology.listens(a, b), topology.listens(b, a));
        // The coordinator listens to all, so that everybody can measure its clock.
        EXPECT_TRUE(a != topology.coordinator() || topology.listens(a, b));
      }
}

TEST(StrictExchange, HasTheBitsOfTheOther) {
  const Topology topology{ServerMode::distributed, 3, 0};
  const Weights expected = train_alone(counts, 3, 4, momentum(), {});
  run_ranks(topology, [&](int rank, const MeshSpec& mesh, Listener listener) {
    Replica replica(counts);
    if (topology.is_owner(rank)) replica.set_initial();
    ExchangeSpec spec;
    spec.overlap = false;
    spec.chunk_bytes = 4096;
    spec.optimiser = momentum();
    ParameterExchange exchange(spec, replica.spans(), Mesh::join(mesh, std::move(listener)));
    train(exchange, replica, rank, 4);
    exchange.finish();
    EXPECT_TRUE(same_bits(replica.weights, expected)) << rank;
  });
}

/// Checks frames that one rank sent to another: each goes before all that were in the queue with it
/// and have a higher place. Returns the number of gradients that new weights overtook.
int check_order(std::vector<TraceEvent> frames, const ShardMap& map, std::size_t head_start) {
  std::sort(frames.begin(), frames.end(),
            [](const TraceEvent& a, const TraceEvent& b) { return a.from < b.from; });
  const auto place = [&](const TraceEvent& event) {
    const std::size_t position = map.find(event.parameter, event.chunk)->position;
    return position + (event.frame == FrameKind::weights ? head_start : 0);
  };
  int overtaken = 0;
  for (std::size_t i = 1; i < frames.size(); ++i)
    for (std::size_t j = i + 1; j < frames.size(); ++j) {
      // Frame i was chosen when frame i - 1 had been sent.
      if (frames[j].queued >= frames[i - 1].to || frames[j].round() != frames[i].round()) continue;
      EXPECT_LE(place(frames[i]), place(frames[j])) << i << ", " << j;
      overtaken +=
          frames[i].frame == FrameKind::weights && frames[j].frame == FrameKind::gradient ? 1 : 0;
    }
  return overtaken;
}

TEST(Exchange, GradientsGoAQuarterOfTheModelAheadOfWeights) {
  const std::vector<std::size_t> large{300000, 64, 700000, 333333};
  for (const bool overlap : {true, false}) {
    std::atomic<int> overtaken{0};
    const auto outcomes = run_ranks(
        {ServerMode::distributed, 3, 0}, [&](int rank, const MeshSpec& mesh, Listener listener) {
          Replica replica(large);
          ExchangeSpec spec;
          spec.overlap = overlap;
          spec.chunk_bytes = 16384;
          spec.trace_steps = 100;
          ParameterExchange exchange(spec, replica.spans(), Mesh::join(mesh, std::move(listener)));
          train(exchange, replica, rank, 3);
          exchange.finish([&] {
            const std::size_t ahead = exchange.shards().elements() / (overlap ? 4 : 1);
            std::vector<std::vector<TraceEvent>> to(3);
            for (const TraceEvent& event : exchange.trace())
              if (event.kind == TraceEvent::Kind::sent &&
                  (event.frame == FrameKind::gradient || event.step > 0))
                to[static_cast<std::size_t>(event.peer)].push_back(event);
            for (auto& frames : to)
              overtaken += check_order(std::move(frames), exchange.shards(), ahead);
            return std::string();
          });
        });
    for (const Outcome& outcome : outcomes) EXPECT_TRUE(outcome.ok) << outcome.message;
    EXPECT_EQ(overtaken > 0, overlap);
  }
}

/// Returns whether no events of different peers overlap in time.
bool one_peer_at_a_time(std::vector<TraceEvent> events) {
  std::sort(events.begin(), events.end(),
            [](const TraceEvent& a, const TraceEvent& b) { return a.from < b.from; });
  for (std::size_t i = 1; i < events.size(); ++i)
    if (events[i].peer != events[i - 1].peer && events[i].from < events[i - 1].to) return false;
  return true;
}

TEST(Semaphore, OneWorkerAtATimeInEachDirectionAndTheSameBits) {
  for (const ServerMode mode : {ServerMode::central, ServerMode::distributed}) {
    SCOPED_TRACE(name_of(mode));
    const Topology topology{mode, 5, 0};
    const int workers = static_cast<int>(topology.workers().size());
    const Weights expected = train_alone(counts, workers, 4, momentum(), {});
    const auto outcomes =
        run_ranks(topology, [&](int rank, const MeshSpec& mesh, Listener listener) {
          Replica replica(counts);
          if (topology.is_owner(rank)) replica.set_initial();
          ExchangeSpec spec;
          spec.semaphore = true;
          spec.chunk_bytes = 4096;
          spec.early_bytes = 0;
          spec.optimiser = momentum();
          spec.trace_steps = 100;
          ParameterExchange exchange(spec, replica.spans(), Mesh::join(mesh, std::move(listener)));
          if (exchange.is_worker())
            train(exchange, replica, mode == ServerMode::central ? rank - 1 : rank, 4);
          std::vector<TraceEvent> gradients, weights;
          exchange.finish([&] {
            for (const TraceEvent& event : exchange.trace()) {
              if (event.kind == TraceEvent::Kind::received && event.frame == FrameKind::gradient)
                gradients.push_back(event);
              if (event.kind == TraceEvent::Kind::sent && event.frame == FrameKind::weights)
                weights.push_back(event);
            }
            return std::string();
          });
          EXPECT_TRUE(same_bits(replica.weights, expected)) << rank;
          if (!topology.is_owner(rank)) return;
          EXPECT_FALSE(gradients.empty());
          EXPECT_TRUE(one_peer_at_a_time(weights)) << rank;
          // A central server's memory is bounded: a worker that finds no room lets the next one
          // through.
          if (mode == ServerMode::distributed) {
            EXPECT_TRUE(one_peer_at_a_time(gradients)) << rank;
          }
        });
    for (const Outcome& outcome : outcomes) EXPECT_TRUE(outcome.ok) << outcome.message;
  }
}

/// Gradients of 0.5 at a rate of 2^-6 from weights of 1: every sum is exact in any order, so the
/// last weights tell how many gradients were applied.
void applies_every_gradient_once(bool semaphore) {
  for (const ServerMode mode : {ServerMode::central, ServerMode::distributed}) {
    SCOPED_TRACE(name_of(mode));
    const Topology topology{mode, 4, 0};
    // Workers take different numbers of steps.
    const auto steps_of = [](int rank) { return static_cast<std::uint64_t>(3 + 5 * rank); };
    std::uint64_t gradients = 0;
    for (const int worker : topology.workers()) gradients += steps_of(worker);
    const float last = 1.0F - static_cast<float>(gradients) / 128.0F;

    std::atomic<std::uint64_t> applied{0};
    const auto outcomes =
        run_ranks(topology, [&](int rank, const MeshSpec& mesh, Listener listener) {
          Replica replica(counts);
          for (auto& values : replica.weights) std::fill(values.begin(), values.end(), 1.0F);
          for (auto& values : replica.gradients) std::fill(values.begin(), values.end(), 0.5F);
          ExchangeSpec spec;
          spec.sync = Sync::none;
          spec.semaphore = semaphore;
          spec.chunk_bytes = 16384;
          spec.rate.base = 1.0 / 64;
          ParameterExchange exchange(spec, replica.spans(), Mesh::join(mesh, std::move(listener)));
          if (exchange.is_worker()) {
            for (std::uint64_t step = 0; step < steps_of(rank); ++step) {
              exchange.begin(step);
              for (std::size_t p = 0; p < counts.size(); ++p) exchange.await(p);
              for (std::size_t p = counts.size(); p-- > 0;) exchange.push(p);
              exchange.end();
            }
          }
          exchange.finish();
          for (const auto& values : replica.weights) {
            EXPECT_EQ(*std::min_element(values.begin(), values.end()), last) << rank;
            EXPECT_EQ(*std::max_element(values.begin(), values.end()), last) << rank;
          }
          for (const Store::Staleness& entry : exchange.staleness()) applied += entry.chunks;
        });
    for (const Outcome& outcome : outcomes) EXPECT_TRUE(outcome.ok) << outcome.message;
    const ShardMap map = mode == ServerMode::central
                             ? ShardMap::central(counts, 0, 16384)
                             : ShardMap::distributed(counts, 4, Shards::even, 16384);
    EXPECT_EQ(applied, gradients * map.chunks());
  }
}

TEST(AsyncExchange, AppliesEveryGradientOnceAndEndsWithTheSameWeights) {
  applies_every_gradient_once(false);
}

TEST(AsyncExchange, SoItDoesInTurns) {
  applies_every_gradient_once(true);
}

}  // namespace
}  // namespace duplex::net
