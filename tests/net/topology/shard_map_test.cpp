// Shard maps against Algorithm 3.7 written down directly, and within the bounds that even shares
// promise.
#include "net/topology/shard_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "core/error.h"

namespace duplex::net {
namespace {

using Counts = std::vector<std::size_t>;

/// Tensors as a few kinds of networks have them: large ones last, biases between, one that
/// outweighs all.
std::vector<Counts> models() {
  Counts vgg, residual, fire;
  std::size_t in = 3;
  for (const std::size_t out : {64, 64, 128, 128, 256, 256, 256, 512, 512, 512}) {
    vgg.insert(vgg.end(), {in * out * 9, out});
    residual.insert(residual.end(), {in * out * 9, out, out});
    fire.insert(fire.end(), {in * out / 8 + 1, out / 8, out, out * 7 + 3});
    in = out;
  }
  vgg.insert(vgg.end(), {25088 * 512, 512, 512 * 101, 101});
  return {vgg, residual, fire, {1}, {16, 1, 1}, {1000003}};
}

std::vector<std::size_t> loads_of(const ShardMap& map, int ranks) {
  std::vector<std::size_t> loads;
  loads.reserve(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) loads.push_back(map.elements_of(rank));
  return loads;
}

void expect_tiles(const ShardMap& map, const Counts& counts, std::size_t chunk_bytes) {
  ASSERT_EQ(map.parameters(), counts.size());
  for (std::size_t p = 0; p < counts.size(); ++p) {
    std::size_t offset = 0;
    for (std::size_t i = map.first(p); i < map.first(p + 1); ++i) {
      EXPECT_EQ(map[i].parameter, p);
      EXPECT_EQ(map[i].number, i - map.first(p));
      EXPECT_EQ(map[i].offset, offset);
      EXPECT_GT(map[i].count, 0U);
      EXPECT_LE(map[i].bytes(), chunk_bytes);
      EXPECT_EQ(map.find(map[i].parameter, map[i].number), &map[i]);
      offset += map[i].count;
    }
    EXPECT_EQ(offset, counts[p]);
    const auto beyond = static_cast<std::uint32_t>(map.first(p + 1) - map.first(p));
    EXPECT_EQ(map.find(static_cast<std::uint32_t>(p), beyond), nullptr);
  }
  EXPECT_EQ(map.find(static_cast<std::uint32_t>(counts.size()), 0), nullptr);
  EXPECT_EQ(map.find(0xffffffffU, 0xffffffffU), nullptr);
  EXPECT_EQ(map.elements(), std::accumulate(counts.begin(), counts.end(), std::size_t{0}));
}

TEST(ShardMap, CentralGivesAllToTheServer) {
  for (const Counts& counts : models()) {
    const ShardMap map = ShardMap::central(counts, 2, 65536);
    expect_tiles(map, counts, 65536);
    EXPECT_EQ(map.elements_of(2), map.elements());
  }
}

TEST(ShardMap, TensorsFollowAlgorithm37) {
  for (const Counts& counts : models())
    for (int ranks = 1; ranks <= 9; ++ranks) {
      const ShardMap map = ShardMap::distributed(counts, ranks, Shards::tensors, 4096);
      expect_tiles(map, counts, 4096);
      std::vector<std::size_t> held(static_cast<std::size_t>(ranks), 0);
      for (std::size_t p = 0; p < counts.size(); ++p) {
        std::size_t least = 0;
        for (std::size_t rank = 1; rank < held.size(); ++rank)
          if (held[rank] < held[least]) least = rank;
        held[least] += counts[p];
        for (std::size_t i = map.first(p); i < map.first(p + 1); ++i)
          EXPECT_EQ(map[i].owner, static_cast<int>(least)) << "tensor " << p;
      }
      EXPECT_EQ(loads_of(map, ranks), held);
    }
}

TEST(ShardMap, EvenSharesAreEven) {
  for (const Counts& counts : models())
    for (int ranks = 1; ranks <= 9; ++ranks) {
      const ShardMap map = ShardMap::distributed(counts, ranks, Shards::even);
      expect_tiles(map, counts, ShardMap::default_chunk_bytes);
      const auto loads = loads_of(map, ranks);
      const std::size_t spread = *std::max_element(loads.begin(), loads.end()) -
                                 *std::min_element(loads.begin(), loads.end());
      std::size_t whole = 0, cut = 0, largest_whole = 0;
      for (const std::size_t count : counts)
        if (ranks == 1 || count < ShardMap::whole_below * static_cast<std::size_t>(ranks)) {
          whole += count;
          largest_whole = std::max(largest_whole, count);
        } else {
          cut += count;
        }
      // There is enough to cut if the whole tensors could all lie on one rank and still be
      // levelled.
      const bool enough = cut >= whole * static_cast<std::size_t>(ranks);
      EXPECT_LE(spread, enough ? 32 : std::max<std::size_t>(32, largest_whole))
          << counts.size() << " tensors, " << ranks << " ranks";
    }
}

/// Among so many ranks hardly any tensor is large enough for a piece for each.
TEST(ShardMap, EvenSharesOfManyRanks) {
  for (const Counts& counts : models())
    for (const int ranks : {17, 64, 100, 128, 200, 512, 1024}) {
      const ShardMap map = ShardMap::distributed(counts, ranks, Shards::even);
      expect_tiles(map, counts, ShardMap::default_chunk_bytes);
      const auto loads = loads_of(map, ranks);
      const std::size_t share = map.elements() / static_cast<std::size_t>(ranks);
      EXPECT_LE(*std::max_element(loads.begin(), loads.end()),
                std::max(2 * share, ShardMap::piece_least) + 32)
          << counts.size() << " tensors, " << ranks << " ranks";
    }
}

TEST(ShardMap, EvenCutsEveryLargeTensorForAll) {
  const Counts counts{500000, 100, 800000, 50, 2000000};
  const ShardMap map = ShardMap::distributed(counts, 4, Shards::even);
  for (const std::size_t p : {0U, 2U, 4U}) {
    Counts share(4, 0);
    for (std::size_t i = map.first(p); i < map.first(p + 1); ++i)
      share[static_cast<std::size_t>(map[i].owner)] += map[i].count;
    for (const std::size_t elements : share)
      EXPECT_NEAR(static_cast<double>(elements), static_cast<double>(counts[p]) / 4, 150);
  }
}

TEST(ShardMap, PositionsCompareAcrossOwners) {
  for (const Counts& counts : models())
    for (const Shards shards : {Shards::even, Shards::tensors}) {
      const ShardMap map = ShardMap::distributed(counts, 4, shards, 65536);
      std::size_t before = 0;
      for (std::size_t p = 0; p < counts.size(); ++p) {
        for (std::size_t i = map.first(p); i < map.first(p + 1); ++i) {
          const bool begins = i == map.first(p) || map[i].owner != map[i - 1].owner;
          if (begins) {
            EXPECT_EQ(map[i].position, before) << "of every share";
          } else {
            EXPECT_GT(map[i].position, map[i - 1].position);
            EXPECT_LT(map[i].position, before + counts[p]);
          }
        }
        before += counts[p];
      }
    }
}

/// Each parameter is owned by those who train with it, a large one in equal shares.
TEST(ShardMap, SharesAmongMembers) {
  const Counts counts{100000, 10, 70001, 20, 5000000, 30};
  const std::vector<std::vector<int>> members{{0, 2}, {0, 2}, {1}, {1}, {0, 1, 3}, {0, 1, 2, 3}};
  const ShardMap map = ShardMap::among(counts, members, 4);
  ASSERT_EQ(map.parameters(), counts.size());
  for (std::size_t p = 0; p < counts.size(); ++p) {
    std::map<int, std::size_t> owned;
    std::size_t next = 0;
    for (std::size_t i = map.first(p); i < map.first(p + 1); ++i) {
      EXPECT_TRUE(map.trains(map[i].owner, p));
      EXPECT_EQ(map[i].offset, next);
      EXPECT_LE(map[i].bytes(), ShardMap::default_chunk_bytes);
      next += map[i].count;
      owned[map[i].owner] += map[i].count;
    }
    EXPECT_EQ(next, counts[p]);
    const bool cut = counts[p] > ShardMap::whole_below * members[p].size();
    EXPECT_EQ(owned.size(), cut ? members[p].size() : 1U);
    for (const auto& [rank, count] : owned) {
      if (cut) {
        EXPECT_NEAR(count, counts[p] / members[p].size(), 32) << rank;
      }
    }
    for (int rank = 0; rank < 4; ++rank)
      EXPECT_EQ(map.trains(rank, p), std::count(members[p].begin(), members[p].end(), rank) == 1);
  }
  EXPECT_EQ(map[map.first(3)].owner, 1);
}

TEST(ShardMap, UnknownNamesListTheKnown) {
  for (const auto& parse : {+[] { parse_shards("tensor"); }, +[] { parse_server_mode("both"); }}) {
    try {
      parse();
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code, Exit::usage);
      EXPECT_NE(std::string(error.what()).find("known: "), std::string::npos);
    }
  }
  EXPECT_EQ(parse_shards(name_of(Shards::even)), Shards::even);
  EXPECT_EQ(parse_server_mode(name_of(ServerMode::central)), ServerMode::central);
}

}  // namespace
}  // namespace duplex::net
