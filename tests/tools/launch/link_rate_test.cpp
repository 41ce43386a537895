// Links that --link-rate bounds, and ranks that launch starts without a nodefile.
#include <algorithm>
#include <string>
#include <vector>

#include "tests/tools/training_runs.h"
#include "tools/run_directory/run_files.h"

namespace duplex::tools::testing {
namespace {

class LinkRateRuns : public TrainingRuns {
 protected:
  Result launch(const std::vector<std::string>& flags, const std::string& name) const {
    return run(plus(plus({"launch"}, flags),
                    {"--", "--net", "lenet", "--device", "replay:0.001", "--batches", "6",
                     "--logdir", folder_ / name, "--timeout", "20"}));
  }
};

TEST_F(LinkRateRuns, BoundTheStepsOfARun) {
  const Result bound = launch({"--local", "2", "--link-rate", "200Mbit/s"}, "bound");
  ASSERT_EQ(bound.exit, 0) << bound.err;
  EXPECT_NE(bound.err.find("sends and takes at most 200 Mbit/s (--link-rate)"), std::string::npos)
      << bound.err;
  const RunConfig config = read_config(folder_ / "bound/config.json");
  ASSERT_TRUE(config.link_rate.has_value());
  EXPECT_DOUBLE_EQ(*config.link_rate, 25e6);
  ASSERT_TRUE(config.addresses.has_value());
  EXPECT_EQ(config.addresses->size(), 2U);
  // Half of LeNet's 1.7 MB of gradients leave in each step, and half of its weights; both come.
  const RunSummary summary = read_summary(folder_ / "bound/summary.json");
  ASSERT_TRUE(summary.traffic.has_value());
  const double bytes = static_cast<double>(config.parameters) * 4.0;
  EXPECT_GE(summary.training->total.median, 0.9 * bytes / 25e6);
  // simulate takes the rate of the link from the run.
  const Result simulated = run({"simulate", "--from", folder_ / "bound", "--t-grad", "0.001",
                                "--batch", "32", "--workers", "2", "--batches", "8"});
  EXPECT_EQ(simulated.exit, 0) << simulated.err;
  EXPECT_NE((simulated.out + simulated.err).find("links of 200 Mbit/s from "), std::string::npos)
      << simulated.out << simulated.err;
}

TEST_F(LinkRateRuns, RefuseWhatIsNone) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases{
      {{"--local", "2", "--link-rate", "0"}, "'0' is not one like 1Gbit/s"},
      {{"--local", "2", "--link-rate", "-5Mbit/s"}, "'-5Mbit/s' is not one like 1Gbit/s"},
      {{"--local", "2", "--link-rate", "fast"}, "'fast' is not one like 1Gbit/s"},
      {{"--local", "2", "--link-rate", "5bit/s"}, "5bit/s is less than 1 kbit/s"},
      {{"--local", "0"}, "--local"},
      {{"--local", "2", "--nodefile", "nodes"}, "--nodefile"},
      {{}, "--nodefile is required, or --local with a number of ranks"}};
  for (const auto& [flags, says] : cases) {
    const Result refused = launch(flags, "refused");
    EXPECT_EQ(refused.exit, 2) << says << refused.err;
    EXPECT_NE(refused.err.find(says), std::string::npos) << refused.err;
    EXPECT_EQ(std::count(refused.err.begin(), refused.err.end(), '\n'), 1) << refused.err;
  }
  const Result stop = run({"launch", "stop", "--local", "2"});
  EXPECT_EQ(stop.exit, 2);
  EXPECT_NE(stop.err.find("stop needs --nodefile"), std::string::npos) << stop.err;
}

TEST_F(LinkRateRuns, GoIntoAPlan) {
  const std::string plan = folder_ / "plan.json";
  const Result planned = run({"plan", "--net", "lenet", "--t-grad", "0.5", "--batch", "32",
                              "--link-rate", "200Mbit/s", "--machines", "2", "--file", plan});
  ASSERT_EQ(planned.exit, 0) << planned.err;
  EXPECT_NE(read_text(plan).find("\"link_rate\": \"200Mbit/s\""), std::string::npos);
  const Result other = run({"dist", "--plan", plan, "--link-rate", "1Gbit/s", "--device",
                            "replay:0.5", "--nodefile", "none"});
  EXPECT_EQ(other.exit, 2);
  EXPECT_NE(other.err.find("--link-rate 1Gbit/s contradicts the plan"), std::string::npos)
      << other.err;
}

}  // namespace
}  // namespace duplex::tools::testing
