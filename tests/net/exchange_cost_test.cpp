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
            Mesh::join(mesh, std::move(listener)), counts, 0.05, std::chrono::seconds(20));
      });
  for (const Outcome& outcome : outcomes) EXPECT_TRUE(outcome.ok) << outcome.message;
  EXPECT_EQ(costs[0].frames, 0U);
  EXPECT_EQ(costs[0].step, 0.0);
  EXPECT_EQ(costs[1].frames, 2 * ShardMap::central(counts, 0).chunks());
  EXPECT_EQ(costs[1].bytes, (1000 + 50000 + 10) * sizeof(float));
  EXPECT_GT(costs[1].step, 0.0);
  EXPECT_LT(costs[1].step, 1.0);
}

}  // namespace
}  // namespace duplex::net::testing
