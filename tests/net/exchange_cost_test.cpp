// Tests measure_exchange() with both ranks in this process.
#include "net/exchange_cost.h"

#include <gtest/gtest.h>

#include "net/topology/shard_map.h"
#include "tests/ranks_in_threads.h"

namespace duplex::net::testing {
namespace {

TEST(ExchangeCost, IsOfTheWorkersFramesAndBytes) {
  const std::vector<std::size_t> counts{1000, 50000, 10};
  std::vector<ExchangeCost> costs(2);
  const std::vector<Outcome> outcomes =
      run_ranks({ServerMode::central, 2, 0}, [&](int rank, MeshSpec mesh, Listener listener) {
        costs[static_cast<std::size_t>(rank)] = measure_exchange(
            Mesh::join(mesh, std::move(listener)), counts, {3, 0.05}, std::chrono::seconds(20));
      });
  for (const Outcome& outcome : outcomes) EXPECT_TRUE(outcome.ok) << outcome.message;
  EXPECT_EQ(costs[0].frames, 0U);
  EXPECT_EQ(costs[0].step, 0.0);
  EXPECT_EQ(costs[1].frames, 2 * ShardMap::central(counts, 0).chunks());
  EXPECT_EQ(costs[1].sent, (1000 + 50000 + 10) * sizeof(float));
  EXPECT_EQ(costs[1].received, costs[1].sent);
  EXPECT_EQ(costs[1].applied, 0U);
  EXPECT_GT(costs[1].step, 0.0);
  EXPECT_LT(costs[1].step, 1.0);
}

TEST(ExchangeCost, IsOfAnOwnersFramesAndBytesToo) {
  const std::vector<std::size_t> counts{1000, 90000, 10};
  constexpr int ranks = 3;
  std::vector<ExchangeCost> costs(ranks);
  const std::vector<Outcome> outcomes = run_ranks(
      {ServerMode::distributed, ranks, 0}, [&](int rank, MeshSpec mesh, Listener listener) {
        costs[static_cast<std::size_t>(rank)] = measure_exchange(
            Mesh::join(mesh, std::move(listener)), counts, {3, 0.0}, std::chrono::seconds(20));
      });
  for (const Outcome& outcome : outcomes) EXPECT_TRUE(outcome.ok) << outcome.message;
  std::size_t sent = 0, received = 0, applied = 0, frames = 0;
  for (const ExchangeCost& cost : costs) {
    EXPECT_GT(cost.step, 0.0);
    sent += cost.sent;
    received += cost.received;
    applied += cost.applied;
    frames += cost.frames;
  }
  // Each of the other workers sends every gradient to its owner, and gets the weights.
  const std::size_t bytes = (1000 + 90000 + 10) * sizeof(float);
  EXPECT_EQ(sent, 2 * (ranks - 1) * bytes);
  EXPECT_EQ(received, sent);
  EXPECT_EQ(applied, ranks * bytes);
  const ShardMap map = ShardMap::distributed(counts, ranks, Shards::even);
  EXPECT_EQ(frames, 4 * (ranks - 1) * map.chunks());
}

TEST(ExchangeCost, OfAFrameIsWhatBytesAndOwnersLeave) {
  ExchangeCost cost;
  EXPECT_EQ(cost.frame(1.0, 1.0, 0.0), 0.0);
  cost = {10.0, 4, 100, 50, 300};
  EXPECT_DOUBLE_EQ(cost.frame(0.01, 0.02, 100.0), (10.0 - 1.0 - 1.0 - 3.0) / 4);
  EXPECT_EQ(cost.frame(1.0, 0.0, 100.0), 0.0);
}

}  // namespace
}  // namespace duplex::net::testing
