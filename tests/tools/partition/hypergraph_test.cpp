// Tests hypergraphs, and that partitions of them are good: beside all partitions that there are,
// and beside one that was planted.
#include "tools/partition/hypergraph.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tools/partition/coarsening.h"
#include "tools/partition/partitioner.h"
#include "tools/partition/refinement.h"

namespace duplex::tools::testing {
namespace {

using Vertex = Hypergraph::Vertex;

Hypergraph drawn(std::size_t vertices, std::size_t nets, std::uint64_t seed) {
  Draws draws(seed);
  Hypergraph graph;
  for (std::size_t v = 0; v < vertices; ++v)
    graph.add_vertex(1 + static_cast<std::int64_t>(draws.below(5)));
  for (std::size_t net = 0; net < nets; ++net) {
    std::vector<Vertex> pins;
    const std::size_t count = 2 + draws.below(4);
    for (std::size_t i = 0; i < count; ++i)
      pins.push_back(static_cast<Vertex>(draws.below(vertices)));
    graph.add_net(std::move(pins), 1 + static_cast<std::int64_t>(draws.below(20)));
  }
  graph.tidy();
  return graph;
}

/// The least cost of all partitions within the limits.
std::int64_t least_cost(const Hypergraph& graph, const std::vector<std::int64_t>& limits) {
  const int count = static_cast<int>(limits.size());
  std::int64_t least = -1;
  Parts parts(graph.vertices(), 0);
  for (bool more = true; more;) {
    if (overweight(graph, limits, parts) == 0) {
      const std::int64_t cost = connectivity_cost(graph, parts, count);
      if (least < 0 || cost < least) least = cost;
    }
    std::size_t v = 0;
    while (v < parts.size() && ++parts[v] == count) parts[v++] = 0;
    more = v < parts.size();
  }
  return least;
}

TEST(Hypergraphs, CostWhatTheirNetsReachInto) {
  Hypergraph graph;
  for (int i = 0; i < 5; ++i) graph.add_vertex(i + 1);
  graph.add_net({0, 1, 2}, 10);
  graph.add_net({2, 1, 0, 2}, 5);  // The same pins.
  graph.add_net({3, 4}, 7);
  graph.add_net({3}, 100);
  graph.add_net({0, 4}, 0);
  graph.tidy();
  EXPECT_EQ(graph.nets(), 2U);
  EXPECT_EQ(graph.total_weight(), 15);
  EXPECT_EQ(graph.nets_of(1).size(), 1U);
  EXPECT_EQ(connectivity_cost(graph, {0, 0, 0, 0, 0}, 3), 0);
  EXPECT_EQ(connectivity_cost(graph, {0, 1, 2, 1, 1}, 3), 30);
  EXPECT_EQ(connectivity_cost(graph, {0, 0, 1, 1, 2}, 3), 22);
  EXPECT_EQ(part_weights(graph, {0, 0, 1, 1, 2}, 3), (std::vector<std::int64_t>{3, 7, 5}));
  EXPECT_EQ(hmetis_text(graph), "2 5 11\n15 1 2 3\n7 4 5\n1\n2\n3\n4\n5\n");
}

TEST(Hypergraphs, CostTheSameWhenContracted) {
  const Hypergraph graph = drawn(200, 400, 1);
  Draws draws(2);
  const std::vector<Level> levels = coarsen(graph, 20, 100, nullptr, draws);
  ASSERT_GT(levels.size(), 1U);
  Parts parts(levels.back().graph.vertices());
  for (int& part : parts) part = static_cast<int>(draws.below(4));
  const std::int64_t cost = connectivity_cost(levels.back().graph, parts, 4);
  const auto weights = part_weights(levels.back().graph, parts, 4);
  for (std::size_t i = levels.size(); i-- > 0;) parts = project(parts, levels[i].clusters);
  EXPECT_EQ(connectivity_cost(graph, parts, 4), cost);
  EXPECT_EQ(part_weights(graph, parts, 4), weights);
}

TEST(Hypergraphs, AreCoarsenedWithinParts) {
  const Hypergraph graph = drawn(200, 400, 1);
  Draws draws(2);
  Parts parts(200);
  for (int& part : parts) part = static_cast<int>(draws.below(3));
  for (const Level& level : coarsen(graph, 20, 100, &parts, draws)) {
    EXPECT_EQ(project(lift(parts, level), level.clusters), parts);
    parts = lift(parts, level);
  }
}

TEST(Refinement, EmptiesPartsThatAreBeyondTheirLimits) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Hypergraph graph = drawn(120, 240, seed);
    const std::vector<std::int64_t> limits(5, graph.total_weight() / 5 + 8);
    Draws draws(seed);
    Parts parts(120, 0);
    refine(graph, limits, parts, draws);
    EXPECT_EQ(overweight(graph, limits, parts), 0) << seed;
  }
}

TEST(Refinement, LowersTheCostWithinLimits) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Hypergraph graph = drawn(120, 240, seed);
    const std::vector<std::int64_t> limits(5, graph.total_weight() / 5 + 8);
    Draws draws(seed);
    Parts parts(120);
    for (std::size_t v = 0; v < parts.size(); ++v) parts[v] = static_cast<int>(v % 5);
    const std::int64_t before = connectivity_cost(graph, parts, 5);
    const std::int64_t after = refine(graph, limits, parts, draws);
    EXPECT_LT(static_cast<double>(after), 0.8 * static_cast<double>(before)) << seed;
    EXPECT_EQ(overweight(graph, limits, parts), 0) << seed;
    // No single move within the limits makes it better.
    const std::vector<std::int64_t> weights = part_weights(graph, parts, 5);
    for (std::size_t v = 0; v < parts.size(); ++v) {
      const int own = parts[v];
      for (int to = 0; to < 5; ++to) {
        const auto weight = graph.weight(static_cast<Vertex>(v));
        if (to == own || weights[static_cast<std::size_t>(to)] + weight > limits[0]) continue;
        parts[v] = to;
        EXPECT_GE(connectivity_cost(graph, parts, 5), after) << seed << ", vertex " << v;
      }
      parts[v] = own;
    }
  }
}

TEST(Partitioner, FindsTheBestOfSmallHypergraphs) {
  int best = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Hypergraph graph = drawn(10, 14, seed);
    for (const std::size_t parts : {2U, 3U}) {
      PartitionSpec spec;
      spec.limits.assign(parts, graph.total_weight() / static_cast<std::int64_t>(parts) + 3);
      const Partition found = best_partitions(graph, spec).front();
      const std::int64_t least = least_cost(graph, spec.limits);
      EXPECT_EQ(found.overweight, 0);
      EXPECT_LE(static_cast<double>(found.cost), 1.15 * static_cast<double>(least)) << seed;
      best += found.cost == least ? 1 : 0;
    }
  }
  EXPECT_GE(best, 36);
}

TEST(Partitioner, FindsWhatWasPlanted) {
  // Four groups of 60 with many nets inside, and a few light ones between.
  Draws draws(3);
  Hypergraph graph;
  for (int i = 0; i < 240; ++i) graph.add_vertex(1);
  std::int64_t between = 0;
  for (int i = 0; i < 1200; ++i) {
    const std::size_t group = draws.below(4);
    std::vector<Vertex> pins;
    for (int k = 0; k < 4; ++k) pins.push_back(static_cast<Vertex>(draws.below(60) * 4 + group));
    graph.add_net(std::move(pins), 10);
  }
  for (Vertex i = 0; i + 1 < 240; i += 8, ++between) graph.add_net({i, i + 1}, 1);
  graph.tidy();
  PartitionSpec spec;
  spec.limits.assign(4, 63);
  const Partition best = best_partitions(graph, spec).front();
  EXPECT_EQ(best.cost, between);
  EXPECT_EQ(best.overweight, 0);
}

TEST(Partitioner, IsTheSameOnAnyNumberOfThreadsAndNeverWorseThanItsSeeds) {
  const Hypergraph graph = drawn(400, 900, 7);
  PartitionSpec spec;
  spec.limits = {graph.total_weight() / 2, graph.total_weight() / 3, graph.total_weight() / 4};
  spec.starts = 3;
  Parts seed(400);
  for (std::size_t v = 0; v < 400; ++v) seed[v] = v < 180 ? 0 : v < 300 ? 1 : 2;
  spec.seeds = {seed};
  const std::vector<Partition> one = best_partitions(graph, spec);
  spec.threads = 4;
  const std::vector<Partition> four = best_partitions(graph, spec);
  ASSERT_EQ(one.size(), 4U);
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_EQ(one[i].parts, four[i].parts) << i;
  EXPECT_LE(one.front().cost, connectivity_cost(graph, seed, 3));
  EXPECT_EQ(one.front().overweight, 0);
  for (std::size_t i = 0; i + 1 < one.size(); ++i) EXPECT_LE(one[i].cost, one[i + 1].cost);
}

}  // namespace
}  // namespace duplex::tools::testing
