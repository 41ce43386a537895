// Tests duplex plan as a user runs it, and what follows its plans.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/temporary_folder.h"
#include "tests/tools/program.h"
#include "tools/plan/machines_file.h"
#include "tools/plan/plan_file.h"

namespace duplex::tools::testing {
namespace {

using Words = std::vector<std::string>;

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

/// Returns the text before the table. The table tells memory in MiB, by which two processes differ.
std::string until_table(const std::string& said) {
  return said.substr(0, said.find("\nway "));
}

/// The verdict does not change where every way fits.
TEST_F(PlanCommand, LeavesOutWhatDoesNotFit) {
  const Result all = run(plan({"--machines", "3"}));
  const Result enough = run(plan({"--machines", "3", "--fits", "1GiB", "--optimizer", "adam"}));
  ASSERT_EQ(enough.exit, 0) << enough.err;
  EXPECT_EQ(enough.out.substr(0, enough.out.find('\n')), all.out.substr(0, all.out.find('\n')));
  EXPECT_NE(enough.out.find(" MiB "), std::string::npos) << enough.out;
  std::istringstream lines(enough.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
  const Result none = run(plan({"--machines", "3", "--fits", "4MiB"}));
  EXPECT_EQ(none.exit, 0) << none.err;
  EXPECT_EQ(none.out.rfind("Does not pay: no machine has the memory", 0), 0U) << none.out;
  EXPECT_NE(none.out.find("Left out, since they need more than 4.0 MiB"), std::string::npos)
      << none.out;
  const std::string file = folder_ / "plan.json";
  const Result nothing = run(plan({"--machines", "3", "--fits", "4MiB", "--file", file}));
  EXPECT_EQ(nothing.exit, 1);
  EXPECT_NE(nothing.err.find("there is no way to write"), std::string::npos) << nothing.err;
  const Result large = run(
      plan({"--machines", "3", "--fits", "4MiB", "--file", file, "--way", "join-distributed@2"}));
  EXPECT_EQ(large.exit, 2);
  EXPECT_NE(large.err.find("join-distributed@2 is left out, since it needs"), std::string::npos)
      << large.err;
  EXPECT_EQ(run(plan({"--machines", "3", "--fits", "some"})).exit, 2);
  EXPECT_EQ(run(plan({"--machines", "3", "--optimizer", "adam"})).exit, 2);
}

TEST_F(PlanCommand, BeginsWithTheVerdictAndFitsATerminal) {
  const Result result = run(plan({"--machines", "3"}));
  ASSERT_EQ(result.exit, 0) << result.err;
  EXPECT_EQ(result.out.rfind("Pays: ", 0), 0U) << result.out;
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
  const Result none =
      run({"plan", "--net", "lenet", "--t-grad", "0.01", "--rate", "1Mbit/s", "--machines", "2"});
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

/// Without figures it measures the machines, and keeps what it has measured.
TEST_F(PlanCommand, MeasuresTheMachines) {
  std::filesystem::create_directories(folder_ / "data");
  write_squares(folder_ / "data", 96, 20);
  std::string nodes;
  for (const int port : free_ports(2)) nodes += "127.0.0.1:" + std::to_string(port) + "\n";
  write_text(folder_ / "nodes", nodes);
  const Result result = run({"plan", "--net", "lenet", "--batch", "6", "--threads", "1",
                             "--seconds", "0.1", "--nodefile", folder_ / "nodes", "--logdir",
                             folder_ / "measured", "--datadir", folder_ / "data"});
  ASSERT_EQ(result.exit, 0) << result.err;
  EXPECT_NE(result.err.find("machine 1 (127.0.0.1:"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find(" GB/s, reading "), std::string::npos) << result.err;
  const std::string path = folder_ / "measured/machines.json";
  const MachinesFile file = read_machines(path);
  EXPECT_EQ(text_of(file), read_text(path));
  ASSERT_EQ(file.machines.size(), 2U);
  for (const MeasuredMachine& machine : file.machines) {
    EXPECT_EQ(machine.threads, 1);
    EXPECT_GT(machine.grad, 1e-5);
    EXPECT_GT(machine.rate(), 1e6);
    EXPECT_GT(machine.memory_bytes, 1 << 20);
    EXPECT_TRUE(machine.computes_on);
    EXPECT_TRUE(machine.frame_processor && machine.gradients_down && machine.weights_up);
    EXPECT_GT(machine.factor_rate.value_or(0.0), 1e7);
    EXPECT_LT(machine.factor_rate.value_or(0.0), 1e13);
    EXPECT_GT(machine.sample_processor.value_or(0.0), 1e-8);
    EXPECT_LT(machine.sample_processor.value_or(0.0), 1e-2);
  }
  const Result again = run({"plan", "--measured", path});
  EXPECT_EQ(until_table(again.out), until_table(result.out)) << again.err;
  const Result slower = run({"plan", "--measured", path, "--link", "1:1Mbit/s"});
  EXPECT_NE(slower.out.find("Does not pay"), std::string::npos) << slower.out;
  EXPECT_NE(slower.err.find("link 1 Mbit/s"), std::string::npos) << slower.err;
  EXPECT_EQ(run({"plan", "--measured", path, "--batch", "7"}).exit, 2);
  const Result on = run({"plan", "--measured", path, "--device", "cuda"});
  EXPECT_EQ(on.exit, 2);
  EXPECT_NE(on.err.find("was measured with --device auto"), std::string::npos) << on.err;
  EXPECT_EQ(run({"plan", "--measured", path, "--rate", "1Gbit/s"}).exit, 2);
  write_text(folder_ / "one", nodes.substr(0, nodes.find('\n') + 1));
  const Result other = run({"plan", "--measured", path, "--nodefile", folder_ / "one"});
  EXPECT_EQ(other.exit, 2);
  EXPECT_NE(other.err.find("/one has one machine: a plan is for two at least"), std::string::npos) << other.err;
  // In another order they are the same machines.
  write_text(folder_ / "turned",
             nodes.substr(nodes.find('\n') + 1) + nodes.substr(0, nodes.find('\n') + 1));
  const Result turned = run({"plan", "--measured", path, "--nodefile", folder_ / "turned"});
  EXPECT_EQ(turned.exit, 0) << turned.err;
  EXPECT_NE(turned.err.find("machine 0 (" + file.machines[1].address + ", "), std::string::npos)
      << turned.err;
}

/// Both machines are this one: reading takes the processors on which they compute.
TEST_F(PlanCommand, ReadingImagesTakesProcessors) {
  std::string nodes;
  for (const int port : free_ports(2)) nodes += "127.0.0.1:" + std::to_string(port) + "\n";
  write_text(folder_ / "nodes", nodes);
  const Words words{
      "plan",      "--net", "lenet",      "--batch",         "6",        "--threads",         "1",
      "--seconds", "0.1",   "--nodefile", folder_ / "nodes", "--logdir", folder_ / "measured"};
  ASSERT_EQ(run(words).exit, 0);
  MachinesFile file = read_machines(folder_ / "measured/machines.json");
  const auto seconds = [&](std::optional<double> reading) {
    for (MeasuredMachine& machine : file.machines) machine.sample_processor = reading;
    write_text(folder_ / "machines.json", text_of(file));
    const Result result =
        run({"plan", "--measured", folder_ / "machines.json", "--output", "json"});
    EXPECT_EQ(result.exit, 0) << result.err;
    const auto json = nlohmann::json::parse(result.out);
    double least = 1e9;
    for (const auto& way : json["ways"]) least = std::min(least, way["image_s"].get<double>());
    return std::pair(json["image_s_alone"].get<double>(), least);
  };
  EXPECT_EQ(file.machines[0].sample_processor, std::nullopt);
  const auto [alone, together] = seconds({});
  EXPECT_LT(alone, 0.1);
  EXPECT_LT(together, 0.1);
  // An image takes 0.1 s of the processors, whoever reads it, and some for computing.
  const auto [alone_reads, together_read] = seconds(0.1);
  const double cores = file.machines[0].cores;
  EXPECT_GT(alone_reads, 0.1 / cores);
  EXPECT_NEAR(alone_reads, 0.1 / cores + alone / cores, 0.1 * alone_reads);
  EXPECT_GT(together_read, 0.1 / cores);
}

TEST_F(PlanCommand, RefusesADataSetThatIsNotThere) {
  std::string nodes;
  for (const int port : free_ports(2)) nodes += "127.0.0.1:" + std::to_string(port) + "\n";
  write_text(folder_ / "nodes", nodes);
  const Words words{
      "plan", "--net", "lenet", "--nodefile", folder_ / "nodes", "--datadir", folder_ / "nowhere"};
  const Result result =
      run(plus(words, {"--seconds", "0.1", "--timeout", "20", "--logdir", folder_ / "measured"}));
  EXPECT_EQ(result.exit, 1) << result.err;
  EXPECT_NE(result.err.find("nowhere"), std::string::npos) << result.err;
  const Result measured = run(plus(words, {"--measured", folder_ / "machines.json"}));
  EXPECT_EQ(measured.exit, 2) << measured.err;
  const Result figures = run(plan({"--nodefile", folder_ / "nodes", "--datadir", folder_.path()}));
  EXPECT_EQ(figures.exit, 2) << figures.err;
  EXPECT_NE(figures.err.find("--datadir is for machines that are measured"), std::string::npos);
}

TEST_F(PlanCommand, NamesMachinesThatCannotBeReached) {
  const std::vector<int> ports = free_ports(2);
  std::string nodes;
  for (const int port : ports) nodes += "127.0.0.1:" + std::to_string(port) + "\n";
  write_text(folder_ / "nodes", nodes + "198.51.100.1\n");
  run({"keygen", folder_ / "key"});
  const Words words{"plan",      "--net", "lenet",         "--batch",    "6",
                    "--threads", "1",     "--seconds",     "0.1",        "--ssh",
                    "false",     "--key", folder_ / "key", "--nodefile", folder_ / "nodes",
                    "--timeout", "20"};
  const Result result = run(plus(words, {"--logdir", folder_ / "first"}));
  EXPECT_EQ(result.exit, 1) << result.err;
  EXPECT_NE(result.err.find("198.51.100.1:7117 did not start; --without 2 plans for the others"),
            std::string::npos)
      << result.err;
  const Result rest = run(plus(words, {"--logdir", folder_ / "second", "--without", "2"}));
  EXPECT_EQ(rest.exit, 0) << rest.err;
  write_text(folder_ / "elsewhere", "198.51.100.1\n198.51.100.2\n");
  const Result none = run({"plan", "--net", "lenet", "--nodefile", folder_ / "elsewhere",
                           "--logdir", folder_ / "third"});
  EXPECT_EQ(none.exit, 2);
  EXPECT_NE(none.err.find("this machine is none of the nodefile's"), std::string::npos) << none.err;
}

/// Measures, plans, and trains if it pays.
TEST_F(PlanCommand, LaunchMakesAPlanByItself) {
  std::filesystem::create_directories(folder_ / "data");
  write_squares(folder_ / "data", 96, 20);
  std::string nodes;
  for (const int port : free_ports(2)) nodes += "127.0.0.1:" + std::to_string(port) + "\n";
  write_text(folder_ / "nodes", nodes);
  const Result result = run({"launch",     "--plan",          "auto",    "--seconds", "1",
                             "--nodefile", folder_ / "nodes", "--",      "--net",     "lenet",
                             "--datadir",  folder_ / "data",  "--batch", "6",         "--batches",
                             "4",          "--threads",       "1",       "--timeout", "20",
                             "--logdir",   folder_ / "run"});
  if (result.exit == 0) {
    const auto config = nlohmann::json::parse(read_text(folder_ / "run/config.json"));
    EXPECT_GT(config["plan"]["speedup"], 1.0);
    EXPECT_NE(result.out.find("Pays: "), std::string::npos) << result.out;
  } else {  // A machine may be so busy that it does not.
    EXPECT_EQ(result.exit, 1) << result.err;
    EXPECT_NE(result.err.find("it does not pay"), std::string::npos) << result.err;
  }
}

TEST_F(PlanCommand, SecondsOfLaunchAreForAPlan) {
  write_text(folder_ / "nodes", "127.0.0.1\n");
  const Result result = run({"launch", "--nodefile", folder_ / "nodes", "--seconds", "1"});
  EXPECT_EQ(result.exit, 2);
  EXPECT_NE(result.err.find("--seconds goes with --plan auto"), std::string::npos) << result.err;
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
