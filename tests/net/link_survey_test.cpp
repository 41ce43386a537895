// The survey of links: who has a turn with whom, and what comes out on loopback.
#include "net/link_survey.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/ranks_in_threads.h"

namespace duplex::net::testing {
namespace {

TEST(LinkSurvey, EveryPairHasOneTurnAndNobodyTwoAtOnce) {
  for (int ranks = 2; ranks <= 9; ++ranks) {
    std::set<std::pair<int, int>> all;
    for (int round = 0; round < survey_rounds(ranks); ++round) {
      std::set<int> busy;
      for (const auto& [a, b] : survey_round(ranks, round)) {
        EXPECT_LT(a, b);
        EXPECT_TRUE(busy.insert(a).second && busy.insert(b).second);
        EXPECT_TRUE(all.insert({a, b}).second);
      }
    }
    EXPECT_EQ(all.size(), static_cast<std::size_t>(ranks * (ranks - 1) / 2));
  }
}

/// Both ends of a link have the same figures, and every rank gets everybody's text.
TEST(LinkSurvey, BothEndsHaveTheSameFigures) {
  constexpr int ranks = 3;
  std::vector<LinkRates> rates(ranks);
  std::vector<std::vector<std::string>> texts(ranks);
  const std::vector<Outcome> outcomes = run_ranks(
      {ServerMode::distributed, ranks, 0}, [&](int rank, MeshSpec mesh, Listener listener) {
        Mesh joined = Mesh::join(mesh, std::move(listener));
        const auto at = static_cast<std::size_t>(rank);
        rates[at] = survey_links(joined, {0.02, std::chrono::seconds(20)});
        texts[at] = share_texts(joined, "rank " + std::to_string(rank), std::chrono::seconds(20));
      });
  for (const Outcome& outcome : outcomes) EXPECT_TRUE(outcome.ok) << outcome.message;
  for (std::size_t a = 0; a < ranks; ++a) {
    EXPECT_EQ(texts[a], (std::vector<std::string>{"rank 0", "rank 1", "rank 2"}));
    EXPECT_EQ(rates[a].out[a], 0.0);
    for (std::size_t b = 0; b < ranks; ++b) {
      if (a == b) continue;
      EXPECT_GT(rates[a].out[b], 1e6);
      EXPECT_NEAR(rates[a].out[b], rates[b].in[a], 1.0);
      EXPECT_GT(rates[a].round_trip[b], 0.0);
      EXPECT_EQ(rates[a].round_trip[b], rates[b].round_trip[a]);
    }
  }
}

}  // namespace
}  // namespace duplex::net::testing
