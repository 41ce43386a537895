// The search for the best way to train: what it simulates, which machines it takes, and what it
// says.
#include "tools/planning/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "models/registry.h"
#include "tools/planning/answer.h"
#include "tools/planning/floor.h"
#include "tools/planning/step_bytes.h"
#include "tools/planning/ways.h"
#include "tools/prediction/layer_times.h"

namespace duplex::tools::testing {
namespace {

/// LeNet on machines whose t_grad and t_comm are these, in seconds.
Situation situation_of(double grad, double comm, int machines,
                       const std::vector<std::string>& slow = {},
                       const std::vector<std::pair<Ranks, double>>& links = {},
                       const std::string& net = "lenet") {
  const Model model = models::build(net, {});
  LayerTimes times = share_out(grad, model);
  times.batch = 32;
  SimulationRequest request;
  request.latency = 0.0;
  request.links = links;
  for (const std::string& text : slow)
    request.stragglers.push_back(Straggler::parse(text, machines));
  return Situation::of(Scenario::with_comm(model, times, comm), request, machines);
}

ParallelSpec spec_of(net::Sync sync, net::ServerMode server) {
  ParallelSpec spec;
  spec.sync = sync;
  spec.server = server;
  return spec;
}

TEST(Planning, ANetworkThatIsNothingToMovePaysAndIsBoundByComputing) {
  const Situation situation = situation_of(1.0, 1e-4, 4);
  const SearchResult found = search(situation);
  ASSERT_TRUE(found.pays());
  EXPECT_NEAR(found.best_exact()->speedup, 4.0, 0.01);
  EXPECT_EQ(found.best_exact()->strategy.workers(), 4);
  EXPECT_EQ(binding(situation, *found.best_exact()), "computing");
  EXPECT_NEAR(found.image_alone, 1.0 / 32, 1e-9);
}

/// No simulation goes below the floor, and the floor is close enough to leave strategies out, where
/// computing binds and where links do.
TEST(Planning, NothingIsFasterThanItsFloor) {
  const std::vector<std::pair<Ranks, double>> unlike = {{{1, 1}, 2e6}};
  for (const bool uneven : {false, true}) {
    SCOPED_TRACE(uneven);
    const Situation situation =
        uneven ? situation_of(0.1, 0.3, 4, {"2:1.7"}, unlike) : situation_of(0.1, 0.001, 4);
    double closest = 0.0, closest_pipeline = 0.0;
    for (const Evaluation& each : search(situation).all) {
      const simulation::Spec spec = situation.spec_of(each.strategy, 1);
      const double part = image_floor(situation, each.strategy, spec) / each.image;
      EXPECT_LT(part, 1.0 + 1e-9) << each.strategy.name() << " " << each.strategy.parallel.stages;
      closest = std::max(closest, part);
      if (each.strategy.parallel.strategy == "pipeline")
        closest_pipeline = std::max(closest_pipeline, part);
    }
    EXPECT_GT(closest, 0.97);
    EXPECT_GT(closest_pipeline, 0.7);
  }
}

/// One that is nothing to compute does not pay, and the links bind it. At the link that
/// break_even() names it comes to one machine's speed.
TEST(Planning, BreakEvenIsWhereItIsAsFastAsOneMachine) {
  for (const double grad : {0.001, 1.0}) {
    SCOPED_TRACE(grad);
    const Situation situation = situation_of(grad, 0.1, 4);
    const SearchResult found = search(situation);
    EXPECT_EQ(found.pays(), grad == 1.0);
    if (!found.pays()) {
      EXPECT_EQ(binding(situation, *found.find("join-distributed")), "the links");
    }
    const std::optional<BreakEven> even = break_even(situation, found);
    ASSERT_TRUE(even);
    const double factor = even->links;
    EXPECT_EQ(factor < 1.0, found.pays());
    const auto best_at = [&](double times) {
      return search(situation_of(grad, 0.1 / times, 4)).best_exact()->speedup;
    };
    EXPECT_NEAR(best_at(factor), 1.0, 0.05);
    EXPECT_LT(best_at(factor * 0.8), 1.0);
    EXPECT_GT(best_at(factor * 1.25), 1.0);
    const std::string text = verdict(situation, found, even);
    EXPECT_EQ(text.rfind(found.pays() ? "Pays: " : "Does not pay: ", 0), 0U) << text;
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
  }
}

/// In the thesis's order, with semaphores or without, an iteration is within its equations.
TEST(Planning, TheEquationsBoundTheThesissOrder) {
  const Situation situation = situation_of(0.5, 0.1, 5);
  const SearchResult found = search(situation);
  for (const std::string way :
       {"join-central-strict", "split-central-strict", "join-central-strict-semaphore"}) {
    const Evaluation* each = found.find(way);
    ASSERT_NE(each, nullptr) << way;
    ASSERT_TRUE(each->equations) << way;
    EXPECT_GE(each->speedup, each->equations->first * 0.98) << way;
    EXPECT_LE(each->speedup, each->equations->second * 1.02) << way;
  }
  EXPECT_FALSE(found.find("average4-distributed")->equations);
}

/// Averaging after K batches moves its bytes once in K steps: the longer the round, the faster.
TEST(Planning, AveragingIsTimedOverWholeRounds) {
  const Situation situation = situation_of(0.2, 0.2, 3);
  const SearchResult found = search(situation);
  double before = found.find("join-distributed")->image;
  for (const char* way : {"average2-distributed", "average4-distributed", "average8-distributed"}) {
    const Evaluation* each = found.find(way);
    ASSERT_NE(each, nullptr) << way;
    EXPECT_LT(each->image, before) << way;
    EXPECT_FALSE(each->strategy.exact());
    before = each->image;
  }
  EXPECT_GT(before, 0.2 / 32 / 3);
}

/// Where the links bind, half of the bytes take half of the time; but the result is another one.
TEST(Planning, SixteenBitsHalveWhatTheLinksCarry) {
  const Situation situation = situation_of(0.01, 0.4, 2);
  SearchResult found = search(situation);
  found.ways.erase(
      std::remove_if(found.ways.begin(), found.ways.end(),
                     [](const Evaluation& each) { return each.strategy.parallel.cuts(); }),
      found.ways.end());
  for (const std::string way : {"join-distributed", "split-distributed", "none-distributed"}) {
    const Evaluation *each = found.find(way), *rounded = found.find(way + "-bf16");
    ASSERT_TRUE(each != nullptr && rounded != nullptr) << way;
    ASSERT_EQ(each->strategy.workers(), rounded->strategy.workers());
    EXPECT_NEAR(rounded->image / each->image, 0.5, 0.03) << way;
    EXPECT_FALSE(rounded->strategy.exact());
    EXPECT_NEAR(rounded->equations->first / each->equations->first, 2.0, 0.1) << way;
    const StepBytes bytes = step_bytes(situation, each->strategy),
                    half = step_bytes(situation, rounded->strategy);
    EXPECT_NEAR(half.worker_out / bytes.worker_out, 0.5, 0.001) << way;
    EXPECT_NEAR(half.worker_in / bytes.worker_in, 0.5, 0.001) << way;
  }
  EXPECT_TRUE(found.best_exact()->strategy.parallel.wire.exact());
  EXPECT_NE(remarks(situation, found, std::nullopt).find("are rounded to 16 bits on the wire"),
            std::string::npos);
}

/// Each byte that a rank sends is one that another receives.
TEST(Planning, RanksReceiveWhatOthersSend) {
  const Situation situation = situation_of(0.2, 0.1, 4, {"3:2"});
  for (const Evaluation& each : search(situation).ways) {
    double out = 0.0, in = 0.0, most = 0.0;
    const std::vector<RankBytes> ranks = rank_bytes(situation, each.strategy);
    ASSERT_EQ(ranks.size(), each.strategy.machines.size()) << each.strategy.name();
    for (const RankBytes& rank : ranks) {
      out += rank.out;
      in += rank.in;
      most = std::max(most, rank.out);
    }
    EXPECT_GT(out, 0.0) << each.strategy.name();
    EXPECT_NEAR(in / out, 1.0, 1e-12) << each.strategy.name();
    const StepBytes bytes = step_bytes(situation, each.strategy);
    EXPECT_EQ(std::max(bytes.worker_out, bytes.server_out), most) << each.strategy.name();
  }
}

TEST(Planning, UnevenMachinesHaveSharesByTheirSpeed) {
  const Situation situation = situation_of(1.0, 1e-4, 3, {"2:2"});
  const SearchResult found = search(situation);
  const Evaluation& best = *found.best_exact();
  EXPECT_EQ(best.strategy.way(), "join-distributed-shared");
  // Speeds of 1, 1 and 0.5; whole images of 96.
  EXPECT_NEAR(best.speedup, 2.5, 0.05);
  EXPECT_EQ(best.strategy.parallel.shares, (std::vector<std::int64_t>{1000, 1000, 500}));
  const std::string text = remarks(situation, found, std::nullopt);
  EXPECT_NE(text.find("with even shares it comes to 2.00 times"), std::string::npos) << text;
}

/// A machine behind a link that is a hundred times slower had better stay out.
TEST(Planning, ASlowLinkStaysOut) {
  const double rate = situation_of(0.2, 0.05, 4).scenario.rate;
  const Situation situation = situation_of(0.2, 0.05, 4, {}, {{{1, 1}, rate / 100}});
  const SearchResult found = search(situation);
  const std::vector<int>& machines = found.best_exact()->strategy.machines;
  EXPECT_EQ(machines, (std::vector<int>{0, 2, 3}));
  const std::string text = remarks(situation, found, std::nullopt);
  EXPECT_NE(text.find("Machine 1 stays out: all of them come to "), std::string::npos) << text;
}

/// A server computes nothing: the machine with the fastest link, of these the slowest.
TEST(Planning, TheServerIsTheMachineThatIsMissedLeast) {
  const double rate = situation_of(1.0, 0.1, 4).scenario.rate;
  const ParallelSpec central = spec_of(net::Sync::join, net::ServerMode::central);
  const auto first = [&](const Situation& situation, int workers) {
    return choices(situation, central, workers).at(0);
  };
  EXPECT_EQ(first(situation_of(1.0, 0.1, 4), 3), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(first(situation_of(1.0, 0.1, 4, {"2:3"}), 3), (std::vector<int>{2, 0, 1, 3}));
  EXPECT_EQ(first(situation_of(1.0, 0.1, 4, {"2:3"}, {{{3, 3}, 10 * rate}}), 2),
            (std::vector<int>{3, 0, 1}));
  EXPECT_TRUE(choices(situation_of(1.0, 0.1, 4), central, 4).empty());
}

/// Every way that the flags allow is there once, and runs in a simulation.
TEST(Planning, KnowsEveryWay) {
  std::set<std::string> names;
  std::size_t count = 0;
  for (const Family& family : all_families()) {
    names.insert(Strategy{family.usual, {0, 1}}.way());
    ++count;
    for (const ParallelSpec& variant : family.variants) {
      names.insert(Strategy{variant, {0, 1}}.way());
      ++count;
    }
  }
  EXPECT_EQ(names.size(), count);
  // Per server: join, split, none, four averagings; orders, semaphores, shards. And two codings,
  // and factors with three in join and split.
  EXPECT_EQ(count, 3U * 8 + 4 * 4 + 3 * 4 + 4 * 2 + 2 * 2 * 3 + 2 * 3);
  const SearchResult found = search(situation_of(0.1, 0.01, 3));
  for (const std::string& name : names) EXPECT_NE(found.find(name), nullptr) << name;
}

/// Batch normalisation is over each worker's images, in join, too.
TEST(Planning, TellsWhatDiffersFromOneMachine) {
  for (const std::string net : {"lenet", "resnet34"}) {
    const Situation situation = situation_of(1.0, 0.1, 2, {}, {}, net);
    const std::string text = remarks(situation, search(situation), std::nullopt);
    EXPECT_EQ(text.rfind("Its result is that of one machine with batch 64, but for rounding", 0),
              0U)
        << text;
    EXPECT_EQ(text.find("batch normalisation, which is over the 32 images") != std::string::npos,
              net == "resnet34")
        << text;
  }
}

TEST(Planning, SplitNeedsAnImageForEveryWorker) {
  Situation situation = situation_of(0.1, 0.01, 4);
  situation.scenario.batch = 3;
  const SearchResult found = search(situation);
  for (const Evaluation& each : found.all)
    EXPECT_TRUE(!each.strategy.parallel.splits() || each.strategy.workers() <= 3);
}

/// The search leaves out ways that need more memory than machines have, and the remarks name them.
TEST(Planning, WaysThatNeedTooMuchMemoryStayOut) {
  constexpr std::size_t mib = std::size_t{1} << 20;
  Situation situation = situation_of(1.0, 0.01, 4);
  situation.memory_limit = 600 * mib;
  situation.memory = [](const Strategy& strategy) {
    if (strategy.parallel.central()) return 900 * mib;
    return (strategy.workers() == 2 ? 700 : 500) * mib;
  };
  const SearchResult found = search(situation);
  ASSERT_FALSE(found.all.empty());
  for (const Evaluation& each : found.all) {
    EXPECT_FALSE(each.strategy.parallel.central());
    EXPECT_GT(each.strategy.workers(), 2);
  }
  EXPECT_EQ(found.too_large.size(), 13U);  // Each mode with a central server.
  EXPECT_EQ(found.too_large_alone, 0U);
  const std::string text = remarks(situation, found, std::nullopt);
  EXPECT_NE(text.find("Left out, since they need more than 600.0 MiB: join-central (900.0 with"),
            std::string::npos)
      << text;
  EXPECT_NE(csv_of(situation, found).find("," + std::to_string(500 * mib) + ","),
            std::string::npos);
  EXPECT_NE(table_of(situation, found, true).find("  500  "), std::string::npos);

  situation.memory = [](const Strategy&) { return 601 * mib; };
  const SearchResult none = search(situation);
  EXPECT_EQ(none.best_exact(), nullptr);
  EXPECT_EQ(none.too_large_alone, 601 * mib);
  EXPECT_NE(verdict(situation, none, break_even(situation, none)).find("Does not pay"),
            std::string::npos);
}

}  // namespace
}  // namespace duplex::tools::testing
