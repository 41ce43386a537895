// The search for the best way to train: what it simulates, which machines it takes, and what it
// says.
#include "tools/planning/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "models/registry.h"
#include "tests/temporary_folder.h"
#include "tests/tools/program.h"
#include "tools/plan/plan_file.h"
#include "tools/planning/answer.h"
#include "tools/planning/ways.h"
#include "tools/prediction/layer_times.h"

namespace duplex::tools::testing {
namespace {

using Words = std::vector<std::string>;

/// LeNet on machines whose t_grad and t_comm are these, in seconds.
Situation situation_of(double grad, double comm, int machines,
                       const std::vector<std::string>& slow = {},
                       const std::vector<std::pair<Ranks, double>>& links = {}) {
  const Model model = models::build("lenet", {});
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

/// One that is nothing to compute does not pay, and the links bind it. At the link that
/// break_even() names it comes to one machine's speed.
TEST(Planning, BreakEvenIsWhereItIsAsFastAsOneMachine) {
  for (const double grad : {0.01, 1.0}) {
    SCOPED_TRACE(grad);
    const Situation situation = situation_of(grad, 0.1, 4);
    const SearchResult found = search(situation);
    EXPECT_EQ(found.pays(), grad == 1.0);
    if (!found.pays()) {
      EXPECT_EQ(binding(situation, *found.best_exact()), "the links");
    }
    const std::optional<double> factor = break_even(situation, found);
    ASSERT_TRUE(factor);
    EXPECT_EQ(*factor < 1.0, found.pays());
    const auto best_at = [&](double times) {
      return search(situation_of(grad, 0.1 / times, 4)).best_exact()->speedup;
    };
    EXPECT_NEAR(best_at(*factor), 1.0, 0.05);
    EXPECT_LT(best_at(*factor * 0.8), 1.0);
    EXPECT_GT(best_at(*factor * 1.25), 1.0);
    const std::string text = verdict(situation, found, factor);
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
  // Per server: join, split, none, four averagings; orders, semaphores, shards.
  EXPECT_EQ(count, 3U * 8 + 4 * 4 + 3 * 4 + 4 * 2);
  const SearchResult found = search(situation_of(0.1, 0.01, 3));
  for (const std::string& name : names) EXPECT_NE(found.find(name), nullptr) << name;
}

TEST(Planning, SplitNeedsAnImageForEveryWorker) {
  Situation situation = situation_of(0.1, 0.01, 4);
  situation.scenario.batch = 3;
  const SearchResult found = search(situation);
  for (const Evaluation& each : found.all)
    EXPECT_TRUE(!each.strategy.parallel.splits() || each.strategy.workers() <= 3);
}

class PlanCommand : public ::testing::Test {
 protected:
  Words plan(const Words& more) const {
    return plus({"plan", "--net", "lenet", "--classes", "10", "--t-grad", "0.02", "--rate",
                 "1Gbit/s", "--batch", "6"},
                more);
  }
  TemporaryFolder folder_;
};

/// The bytes that it tells of a worker's step are those of simulate's ledger.
TEST_F(PlanCommand, TellsTheBytesOfALedger) {
  const Result result = run(plan({"--machines", "3", "--output", "json"}));
  ASSERT_EQ(result.exit, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  for (const std::string server : {"distributed", "central"}) {
    const auto way = std::find_if(json["ways"].begin(), json["ways"].end(), [&](const auto& each) {
      return each["way"] == "join-" + server;
    });
    ASSERT_NE(way, json["ways"].end());
    const std::string run_folder = folder_ / server;
    const Result simulated =
        run({"simulate", "--net", "lenet", "--classes", "10", "--t-grad", "0.02", "--rate",
             "1Gbit/s", "--batch", "6", "--workers", std::to_string((*way)["workers"].get<int>()),
             "--server", server, "--batches", "60", "--logdir", run_folder});
    ASSERT_EQ(simulated.exit, 0) << simulated.err;
    const auto sent = [&](int rank) {
      return nlohmann::json::parse(read_text(run_folder + "/rank-" + std::to_string(rank) +
                                             ".json"))["traffic"]["step_sent"]
          .get<double>();
    };
    double most = 0.0;
    for (int rank = server == "central" ? 1 : 0; rank < 2; ++rank)
      most = std::max(most, sent(rank));
    EXPECT_NEAR((*way)["worker_bytes_a_step"].get<double>(), most, 200) << server;
    EXPECT_NEAR((*way)["server_bytes_a_step"].get<double>(), server == "central" ? sent(0) : 0.0,
                400);
  }
}

TEST_F(PlanCommand, BeginsWithTheVerdictAndFitsATerminal) {
  const Result result = run(plan({"--machines", "3"}));
  ASSERT_EQ(result.exit, 0) << result.err;
  EXPECT_EQ(result.out.rfind("Pays: ", 0), 0U) << result.out;
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
  const Result none =
      run({"plan", "--net", "vgg16e", "--t-grad", "0.1", "--rate", "10Mbit/s", "--machines", "2"});
  EXPECT_EQ(none.out.rfind("Does not pay: ", 0), 0U) << none.out;
}

TEST_F(PlanCommand, ComparesTwoWaysTermByTerm) {
  const Result result =
      run(plan({"--machines", "3", "--why", "join-distributed", "split-central@2"}));
  ASSERT_EQ(result.exit, 0) << result.err;
  for (const char* part : {"waiting for weights", "computing", "busiest link", "bound by",
                           "join-distributed@3 is ", "times as fast"})
    EXPECT_NE(result.out.find(part), std::string::npos) << part << "\n" << result.out;
  const Result unknown =
      run(plan({"--machines", "3", "--why", "join-distributed", "join-nowhere"}));
  EXPECT_EQ(unknown.exit, 2);
  EXPECT_NE(unknown.err.find("no way 'join-nowhere'"), std::string::npos) << unknown.err;
}

/// plan.json is read as it is written; launch runs it, and the run says what was predicted.
TEST_F(PlanCommand, LaunchFollowsAPlan) {
  std::filesystem::create_directories(folder_ / "data");
  write_squares(folder_ / "data", 96, 20);
  std::string nodes;
  for (const int port : free_ports(3)) nodes += "127.0.0.1:" + std::to_string(port) + "\n";
  write_text(folder_ / "nodes", nodes);
  const std::string file = folder_ / "plan.json";
  for (const std::string way :
       {"join-distributed", "average2-central", "join-distributed-shared@2"}) {
    SCOPED_TRACE(way);
    Words words{"--nodefile", folder_ / "nodes", "--file", file, "--way", way};
    if (way.back() == '2') words.insert(words.end(), {"--slow", "0:2", "--slow", "1:4"});
    const Result result = run(plan(words));
    ASSERT_EQ(result.exit, 0) << result.err;
    const PlanFile plan = read_plan(file);
    EXPECT_EQ(text_of(plan), read_text(file));
    const std::string nodefile =
        std::filesystem::exists(file + ".nodes") ? file + ".nodes" : std::string(folder_ / "nodes");
    EXPECT_EQ(way.back() == '2', nodefile == file + ".nodes");
    const Result launched =
        run({"launch", "--plan", file, "--nodefile", nodefile, "--", "--datadir", folder_ / "data",
             "--batches", "4", "--threads", "1", "--timeout", "20", "--logdir", folder_ / way});
    ASSERT_EQ(launched.exit, 0) << launched.err;
    EXPECT_NE(launched.out.find(" foreseen"), std::string::npos) << launched.out;
    const Result page = run({"report", folder_ / way, "--output", folder_ / "page.html"});
    ASSERT_EQ(page.exit, 0) << page.err;
    EXPECT_NE(read_text(folder_ / "page.html").find("What the plan foresaw"), std::string::npos);
    const auto config = nlohmann::json::parse(read_text(folder_ / (way + "/config.json")));
    EXPECT_EQ(config["plan"]["way"], plan.predicted.way);
    EXPECT_EQ(config["average"], way == "average2-central" ? 2 : 0);
    EXPECT_EQ(config["server"], way == "average2-central" ? "central" : "distributed");
    EXPECT_EQ(config.contains("samples"), way.back() == '2');
    if (way.back() == '2') {
      EXPECT_EQ(plan.machines, (std::vector<int>{0, 2}));
      EXPECT_EQ(config["samples"], nlohmann::json::array({4, 8}));
    }
    std::filesystem::remove(file + ".nodes");
  }
}

TEST_F(PlanCommand, WhatContradictsAPlanIsNamed) {
  std::string nodes, others;
  const std::vector<int> ports = free_ports(4);
  for (int i = 0; i < 4; ++i)
    (i < 2 ? nodes : others) +=
        "127.0.0.1:" + std::to_string(ports[static_cast<std::size_t>(i)]) + "\n";
  write_text(folder_ / "nodes", nodes);
  write_text(folder_ / "others", others);
  write_text(folder_ / "three", nodes + others.substr(0, others.find('\n') + 1));
  const std::string file = folder_ / "plan.json";
  ASSERT_EQ(run(plan({"--nodefile", folder_ / "nodes", "--file", file})).exit, 0);
  const auto refuses = [&](const std::string& nodefile, const Words& more,
                           const std::string& because, int code = 2) {
    const Result result =
        run(plus({"dist", "--plan", file, "--datadir", folder_.path(), "--nodefile",
                  folder_ / nodefile, "--index", "0", "--logdir", folder_ / "run"},
                 more));
    EXPECT_EQ(result.exit, code) << result.err;
    EXPECT_NE(result.err.find(because), std::string::npos) << result.err;
  };
  refuses("three", {}, "is for 2 ranks, and there are 3");
  refuses("others", {}, "is for the machines 127.0.0.1:" + std::to_string(ports[0]));
  refuses("nodes", {"--net", "alexnet"}, "--net alexnet contradicts the plan");
  refuses("nodes", {"--batch", "7"}, "--batch 7 contradicts the plan");
  refuses("nodes", {"--share", "1:2"}, "--share is given by the plan");
  write_text(file, R"({"version": 2})");
  refuses("nodes", {}, "of another version", 1);
  write_text(file, R"({"version": 1, "program": "1.0"})");
  refuses("nodes", {}, "it has no network", 1);
}

TEST_F(PlanCommand, RefusesWhatMakesNoSense) {
  const auto refuses = [&](const Words& more, const std::string& because) {
    const Result result = run(plan(more));
    EXPECT_EQ(result.exit, 2) << result.err;
    EXPECT_NE(result.err.find(because), std::string::npos) << result.err;
  };
  refuses({}, "how many machines?");
  refuses({"--machines", "1"}, "--machines");
  refuses({"--machines", "3", "--slow", "3:2"}, "'3:2'");
  refuses({"--machines", "3", "--link", "0:nan"}, "'nan'");
  refuses({"--machines", "3", "--way", "join-central"}, "--file");
  refuses({"--machines", "3", "--file", folder_ / "p", "--way", "x"}, "no way 'x'");
}

}  // namespace
}  // namespace duplex::tools::testing
