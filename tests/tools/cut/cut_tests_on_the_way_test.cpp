// Tests between the steps of trainings whose network is cut: rank 0 tests the whole network.
#include <fstream>

#include "tests/tools/training_runs.h"
#include "tools/run_directory/row_file.h"
#include "tools/run_directory/rows.h"

namespace duplex::tools::testing {
namespace {

using Flags = std::vector<std::string>;

class CutTestsOnTheWay : public TrainingRuns {
 protected:
  void train(const std::string& name, int ranks, int batch, const Flags& flags,
             bool keep = false) const {
    for (Process& rank : start(name, ranks, batch, flags, keep)) {
      const Result result = rank.wait();
      EXPECT_EQ(result.exit, 0) << result.err;
    }
  }
  std::vector<AccuracyRow> tests_of(const std::string& name) const {
    return read_rows<AccuracyRow>(folder_ / (name + "/accuracy.csv"), true);
  }
  std::vector<StepMetrics> steps_of(const std::string& name) const {
    return read_rows<StepMetrics>(folder_ / (name + "/metrics.csv"), true);
  }
};

/// `factor`: a step of `wanted` is so many of `rows`.
void expect_equal(const std::vector<AccuracyRow>& rows, const std::vector<AccuracyRow>& wanted,
                  std::uint64_t factor = 1) {
  ASSERT_EQ(rows.size(), wanted.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(rows[i].step * factor, wanted[i].step);
    EXPECT_EQ(rows[i].epoch, wanted[i].epoch);
    EXPECT_EQ(rows[i].samples, wanted[i].samples);
    EXPECT_EQ(rows[i].top1, wanted[i].top1);
    EXPECT_EQ(rows[i].loss, wanted[i].loss);
  }
}

TEST_F(CutTestsOnTheWay, FindWhatOneMachineFinds) {
  const std::string net = network_with_statistics();
  const Flags flags{"--net", net,          "--momentum",   "0.9", "--epochs",
                    "2",     "--accuracy", "--test-every", "0.5"};
  ASSERT_EQ(run(arguments("local", "alone", 4, plus(flags, {"--accumulate", "2"}))).exit, 0);
  const std::vector<AccuracyRow> wanted = tests_of("alone");
  ASSERT_EQ(wanted.size(), 4U);
  // Two ranks share the first stage in the second case; its sums are the same to rounding.
  train("pipeline", 2, 4, plus(flags, {"--strategy", "pipeline", "--micro-batches", "2"}));
  expect_equal(tests_of("pipeline"), wanted, 2);
}

TEST_F(CutTestsOnTheWay, GoOnWhereTheTrainingDoes) {
  for (const Flags& cut : {Flags{"--strategy", "pipeline", "--stages", "2:1", "--micro-batches",
                                 "2", "--wire", "bf16"},
                           Flags{"--strategy", "filter"}}) {
    const Flags flags = plus({"--net", network_with_statistics(), "--momentum", "0.9", "--accuracy",
                              "--test-every", "0.25"},
                             cut);
    const std::string whole = cut[1] + "-whole", parts = cut[1] + "-parts";
    train(whole, 3, 4, plus(flags, {"--batches", "9"}));
    train(parts, 3, 4, plus(flags, {"--batches", "5", "--checkpoint-every", "5"}));
    train(parts, 3, 4, plus(flags, {"--batches", "9", "--resume"}), true);
    const std::vector<AccuracyRow> wanted = tests_of(whole);
    ASSERT_EQ(wanted.size(), 5U);  // After 2, 4, 6, 8 steps, and in the end.
    std::vector<AccuracyRow> rows = tests_of(parts);
    ASSERT_EQ(rows.size(), 6U);
    EXPECT_EQ(rows[2].step, 5U);  // The end of the first run.
    rows.erase(rows.begin() + 2);
    if (cut.back() != "bf16") expect_equal(rows, wanted);
    for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows[i].step, wanted[i].step);
    const std::vector<StepMetrics> steps = steps_of(parts), all = steps_of(whole);
    ASSERT_EQ(steps.size(), all.size());
    for (std::size_t i = 0; i < steps.size(); ++i) EXPECT_EQ(steps[i].epoch, all[i].epoch) << i;
  }
}

/// All ranks end together, and rank 0 saves the network of the step that they end with.
TEST_F(CutTestsOnTheWay, EndTheTrainingAtItsAim) {
  for (const Flags& cut :
       {Flags{"--strategy", "pipeline", "--micro-batches", "2"}, Flags{"--strategy", "hybrid"}}) {
    const Flags flags = plus({"--momentum", "0.9"}, cut);
    train(cut[1], 3, 4,
          plus(flags, {"--epochs", "200", "--test-every", "0.5", "--until", "top1:0.5"}));
    const std::vector<AccuracyRow> tests = tests_of(cut[1]);
    ASSERT_FALSE(tests.empty());
    EXPECT_GE(tests.back().top1, 0.5);
    const std::size_t steps = steps_of(cut[1]).size();
    ASSERT_LT(steps, 1600U);
    EXPECT_LE(tests.back().step, steps);
    EXPECT_EQ(read_weights(folder_ / (cut[1] + "/checkpoint.safetensors")),
              together(3, 4, plus(flags, {"--batches", std::to_string(steps)})));
  }
}

/// The first test reaches the aim one step before the end; and the first two, before a step that is
/// not tested.
TEST_F(CutTestsOnTheWay, EndWhereTheFirstTestSays) {
  const Flags flags{"--momentum", "0.9", "--strategy", "pipeline", "--micro-batches", "2"};
  const Flags aim = plus(flags, {"--until", "top1:0.01"});
  train("last", 3, 4, plus(aim, {"--batches", "2", "--test-every", "0.125"}));
  train("twice", 3, 4, plus(aim, {"--batches", "9", "--test-every", "0.1875"}));
  for (const auto& [name, steps] : {std::pair{"last", 2}, std::pair{"twice", 4}}) {
    SCOPED_TRACE(name);
    EXPECT_EQ(steps_of(name).size(), static_cast<std::size_t>(steps));
    EXPECT_EQ(read_weights(folder_ / (std::string(name) + "/checkpoint.safetensors")),
              together(3, 4, plus(flags, {"--batches", std::to_string(steps)})));
  }
  const std::vector<AccuracyRow> tests = tests_of("twice");
  ASSERT_EQ(tests.size(), 3U);  // The last one is that of the end.
  EXPECT_EQ(tests[0].step, 2U);
  EXPECT_EQ(tests[1].step, 3U);
}

}  // namespace
}  // namespace duplex::tools::testing
