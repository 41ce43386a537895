// Tests that plan finds ways to cut a network, says what they send, and is followed.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/temporary_folder.h"
#include "tests/tools/program.h"
#include "tools/plan/plan_file.h"

namespace duplex::tools::testing {
namespace {

using Words = std::vector<std::string>;

class CutPlan : public ::testing::Test {
 protected:
  /// Expects that the bytes which plan tells of a rank's step are those of simulate's ledger.
  /// Returns the names of the ways that cut the network over all machines.
  Words expect_bytes_of_ledgers(const Words& model, int machines) {
    const std::string number = std::to_string(machines);
    const Result result =
        run(plus(plus({"plan"}, model), {"--machines", number, "--output", "json"}));
    EXPECT_EQ(result.exit, 0) << result.err;
    Words names;
    const auto json = nlohmann::json::parse(result.out);
    for (const auto& way : json["ways"]) {
      if (way["cut_flags"].empty() || way["workers"] != machines) continue;
      const std::string name = way["way"], run_folder = folder_ / name;
      names.push_back(name);
      Words words = plus(plus({"simulate"}, model),
                         {"--workers", number, "--batches", "15", "--logdir", run_folder});
      for (const std::string flag : way["cut_flags"]) words.push_back(flag);
      const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
      if (has("lossless")) words = plus(words, {"--wire", "lossless"});
      if (has("bf16")) words = plus(words, {"--wire", "bf16"});
      const Result simulated = run(words);
      EXPECT_EQ(simulated.exit, 0) << simulated.err;
      double most = 0.0;
      for (int rank = 0; rank < machines; ++rank) {
        const std::string summary = run_folder + "/rank-" + std::to_string(rank) + ".json";
        most = std::max(
            most, nlohmann::json::parse(read_text(summary))["traffic"]["step_sent"].get<double>());
      }
      EXPECT_NEAR(way["worker_bytes_a_step"].get<double>(), most, 200) << name;
    }
    return names;
  }

  TemporaryFolder folder_;
};

TEST_F(CutPlan, TellsTheBytesOfALedger) {
  const Words names = expect_bytes_of_ledgers({"--net", "lenet", "--classes", "10", "--t-grad",
                                               "0.02", "--rate", "1Gbit/s", "--batch", "6"},
                                              3);
  EXPECT_GE(names.size(), 3U);
}

/// Where gradients cross, this network's linear layers belong on one machine, for which they are
/// too much work; where factors do, two machines share them.
TEST_F(CutPlan, LooksForPipelinesWithFactors) {
  const std::string net = folder_ / "shared.net";
  write_text(net,
             "network Shared\ninput 16x16x3\nclasses 10\nconv1 conv 3x3 same, 32 filters, relu\n"
             "conv2 conv 3x3 same, 32 filters, relu\nfc3 linear 512 outputs, relu\n"
             "fc4 linear classes outputs\nsoftmax softmax\nend\n");
  const Words names = expect_bytes_of_ledgers(
      {"--net", net, "--t-grad", "0.05", "--rate", "500Mbit/s", "--batch", "8"}, 4);
  const auto begins_with = [&](const std::string& text) {
    return std::find_if(names.begin(), names.end(),
                        [&](const std::string& name) { return name.rfind(text, 0) == 0; });
  };
  // They are told in order, the fastest first.
  const auto factored = begins_with("pipeline-2:2-m8-factors");
  const auto plain = begins_with("pipeline-1:1:1:1-m");
  ASSERT_NE(factored, names.end());
  ASSERT_NE(plain, names.end());
  EXPECT_LT(factored, plain);
}

/// On a slow link nothing pays but to cut the network. launch does what the plan says.
TEST_F(CutPlan, CutsTheNetworkWhereThatPays) {
  const std::string file = folder_ / "plan.json";
  const Result planned =
      run({"plan", "--net", "lenet", "--classes", "10", "--t-grad", "0.05", "--rate", "10Mbit/s",
           "--batch", "16", "--machines", "2", "--file", file});
  ASSERT_EQ(planned.exit, 0) << planned.err;
  EXPECT_EQ(planned.out.rfind("Pays: ", 0), 0U) << planned.out;
  EXPECT_NE(planned.out.find("with pipeline-1:1-m"), std::string::npos) << planned.out;
  const ParallelSpec spec = read_plan(file).parallel_spec();
  EXPECT_EQ(spec.strategy, "pipeline");
  EXPECT_GT(spec.micro_batches, 1U);
  write_text(folder_ / "nodes", nodes_here(2));
  const Words follow{"launch",   "--plan",      file,        "--nodefile", folder_ / "nodes", "--",
                     "--device", "replay:0.01", "--batches", "3",          "--timeout",       "20"};
  const Result trained = run(plus(follow, {"--logdir", folder_ / "run"}));
  ASSERT_EQ(trained.exit, 0) << trained.err;
  const auto config = nlohmann::json::parse(read_text(folder_ / "run/config.json"));
  EXPECT_EQ(config.at("strategy"), "pipeline");
  EXPECT_EQ(config.at("stages"), spec.stages);
  EXPECT_EQ(config.at("micro_batches"), spec.micro_batches);
  const auto refuses = [&](const Words& more, const std::string& because) {
    const Result result = run(
        plus({"dist", "--plan", file, "--nodefile", folder_ / "nodes", "--index", "0", "--device",
              "replay:0.01", "--batches", "3", "--timeout", "1", "--logdir", folder_ / "refused"},
             more));
    EXPECT_NE(result.exit, 0);
    EXPECT_NE(result.err.find(because), std::string::npos) << result.err;
  };
  refuses({"--micro-batches", "3"}, "--micro-batches 3 contradicts the plan");
  refuses({"--strategy", "owt"}, "--strategy owt contradicts the plan");
  const std::string text = read_text(file);
  std::string damaged = text;
  damaged.replace(damaged.find("\"pipeline\""), 10, "\"rows\"");
  write_text(file, damaged);
  refuses({}, "there is no strategy rows");
  damaged = text;
  damaged.replace(damaged.find("\"stages\": \"1:1"), 14, "\"stages\": \"x:1");
  write_text(file, damaged);
  refuses({}, "is no number of ranks");
  // It is for this network alone: these layers, this input, these parameters.
  const auto changed = [&](const char* key, const nlohmann::json& value) {
    auto plan = nlohmann::json::parse(text);
    plan.at(key) = value;
    write_text(file, plan.dump());
  };
  changed("stages", "1:1@conv9");
  refuses({}, "no stage can begin with 'conv9'");
  changed("stages", "1:1:1");
  refuses({}, "stages 1:1:1 are for 3 ranks, and there are 2");
  changed("micro_batches", 5);
  refuses({}, "cannot be cut into 5 micro-batches");
  for (const auto& [key, value] : {std::pair<const char*, nlohmann::json>("input", "1x1x32x32"),
                                   {"parameters", 1000},
                                   {"title", "LeNet 6"}}) {
    changed(key, value);
    refuses({}, ": make another plan");
  }
}

/// The network is too large for each machine, and its parts are not, as the kernel counts them.
TEST_F(CutPlan, CutsTheNetworkWhereItDoesNotFit) {
  const std::string net = folder_ / "large.net", file = folder_ / "plan.json";
  write_text(net,
             "network Large\ninput 28x28x1\nclasses 10\nfc1 linear 4096 outputs, relu\n"
             "fc2 linear 4096 outputs, relu\nfc3 linear 4096 outputs, relu\n"
             "fc4 linear classes outputs\nsoftmax softmax\nend\n");
  const Words training{"--net", net, "--batch", "8", "--threads", "1"};
  TemporaryFolder data;
  write_squares(data.path(), 80, 40);
  const auto peak_of = [&](const std::string& summary) {
    return nlohmann::json::parse(read_text(folder_ / summary))["peak_memory_bytes"].get<double>();
  };
  const Words steps{"--datadir", data.path(), "--batches", "2", "--momentum", "0.9"};
  const Result alone = run(plus(plus({"local", "--logdir", folder_ / "alone"}, training), steps));
  ASSERT_EQ(alone.exit, 0) << alone.err;
  const double whole = peak_of("alone/summary.json");
  const int limit = static_cast<int>(0.8 * whole / 1048576.0);
  const Result planned = run(
      plus({"plan", "--classes", "10", "--machines", "4", "--t-grad", "0.1", "--rate", "100Mbit/s",
            "--momentum", "0.9", "--fits", std::to_string(limit) + "MiB", "--file", file},
           training));
  ASSERT_EQ(planned.exit, 0) << planned.err;
  EXPECT_NE(planned.out.find("One machine alone would need"), std::string::npos) << planned.out;
  EXPECT_NE(planned.out.find("join-distributed ("), std::string::npos) << planned.out;
  const ParallelSpec spec = read_plan(file).parallel_spec();
  EXPECT_TRUE(spec.cuts()) << planned.out;
  write_text(folder_ / "nodes", nodes_here(4));
  const Result trained = run(plus(plus({"launch", "--plan", file, "--nodefile", folder_ / "nodes",
                                        "--", "--timeout", "20", "--logdir", folder_ / "run"},
                                       training),
                                  steps));
  ASSERT_EQ(trained.exit, 0) << trained.err;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP()
      << "that plan cuts the network and launch follows it was tested; the memory that ranks "
         "took cannot be told in a build with a sanitizer, which has memory of its own";
#endif
  for (int rank = 0; rank < 4; ++rank)
    EXPECT_LT(peak_of("run/rank-" + std::to_string(rank) + ".json"), 0.82 * whole) << rank;
}

}  // namespace
}  // namespace duplex::tools::testing
