// Tests who keeps copies of whose part.
#include "net/topology/keepers.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace duplex::net {
namespace {

using Ranks = std::vector<int>;

Ranks keepers(ServerMode mode, const std::vector<std::string>& hosts) {
  const Topology topology{mode, static_cast<int>(hosts.size()), 0};
  const Keepers found(topology, hosts);
  Ranks ranks;
  std::size_t kept = 0;
  for (int rank = 0; rank < topology.size; ++rank) {
    ranks.push_back(found.of(rank));
    for (const int owner : found.owners_of(rank)) {
      EXPECT_EQ(found.of(owner), rank);
      ++kept;
    }
  }
  EXPECT_EQ(kept,
            hosts.size() - static_cast<std::size_t>(std::count(ranks.begin(), ranks.end(), -1)));
  return ranks;
}

constexpr auto distributed = ServerMode::distributed, central = ServerMode::central;

TEST(Keepers, AreTheNextRankOnAnotherMachine) {
  EXPECT_EQ(keepers(distributed, {"a", "b", "c"}), (Ranks{1, 2, 0}));
  EXPECT_EQ(keepers(distributed, {"", "", ""}), (Ranks{1, 2, 0})) << "unknown, so others";
  EXPECT_EQ(keepers(distributed, {"a", "a", "b", "b"}), (Ranks{2, 3, 0, 1}));
  EXPECT_EQ(keepers(distributed, {"a", "a", "b"}), (Ranks{2, 2, 0})) << "no distance serves all";
  EXPECT_EQ(keepers(distributed, {"a", "a", "a"}), (Ranks{1, 2, 0})) << "there is no other";
}

TEST(Keepers, ACentralServersIsAWorker) {
  EXPECT_EQ(keepers(central, {"a", "b", "c"}), (Ranks{1, -1, -1}));
  EXPECT_EQ(keepers(central, {"a", "a", "c"}), (Ranks{2, -1, -1}));
  EXPECT_EQ(keepers(central, {"a", "a"}), (Ranks{1, -1}));
}

/// Ranks whose nodefiles differ would not find each other's copies, so they compare this.
TEST(Keepers, SayWhoTheyAre) {
  const auto said = [](ServerMode mode, const std::vector<std::string>& hosts) {
    return Keepers({mode, static_cast<int>(hosts.size()), 0}, hosts).str();
  };
  EXPECT_EQ(said(distributed, {"a", "b", "c"}), "");
  EXPECT_EQ(said(distributed, {"a"}), "");
  EXPECT_EQ(said(central, {"a", "b", "c"}), "");
  EXPECT_EQ(said(distributed, {"a", "a", "b", "b"}), "nodefile with copies 2 workers on");
  EXPECT_EQ(said(distributed, {"a", "a", "b"}), "nodefile with copies at 2 2 0");
  EXPECT_EQ(said(central, {"a", "a", "c"}), "nodefile with copies at 2");
}

TEST(Keepers, ARankAloneHasNone) {
  EXPECT_EQ(keepers(distributed, {"a"}), (Ranks{-1}));
}

}  // namespace
}  // namespace duplex::net
