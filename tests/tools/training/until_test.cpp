// --until: trainings that end when a test reaches an accuracy, and what that took.
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <tuple>

#include "core/error.h"
#include "tests/tools/training_runs.h"
#include "tools/run_directory/row_file.h"
#include "tools/run_directory/rows.h"
#include "tools/run_directory/time_to_accuracy.h"
#include "tools/training/metrics.h"

namespace duplex::tools::testing {
namespace {

using Words = std::vector<std::string>;

class Until : public TrainingRuns {
 protected:
  /// Images that a network learns in a few epochs.
  Until() { write_squares(data_.path(), 320, 100); }

  nlohmann::json summary_of(const std::string& name) const {
    return nlohmann::json::parse(read_text(folder_ / (name + "/summary.json")));
  }

  /// Trains with so many ranks, which all end well. Returns what they printed.
  std::string train(const std::string& name, int ranks, const Words& more,
                    bool keep = false) const {
    std::string out;
    for (Process& process : start(name, ranks, 16, plus(plus(flags, until), more), keep)) {
      const Result result = process.wait();
      EXPECT_EQ(result.exit, 0) << result.err;
      out += result.out;
    }
    return out;
  }

  /// The words of `local` in a directory that stays.
  Words arguments_again(const std::string& name, const Words& more) const {
    return plus({"local", "--net", "lenet", "--datadir", data_.path(), "--logdir", folder_ / name,
                 "--threads", "1", "--batch", "16"},
                more);
  }

  /// Far more epochs than it takes.
  const Words flags{"--lr", "0.05", "--epochs", "200", "--seed", "3"};
  const Words until{"--until", "top1:0.8"}, momentum{"--momentum", "0.9"};
};

TEST_F(Until, AMachineAloneEndsThere) {
  const Result result = run(arguments("local", "alone", 16, plus(plus(flags, until), momentum)));
  ASSERT_EQ(result.exit, 0) << result.err;
  const auto summary = summary_of("alone");
  const auto steps = summary.at("steps").get<std::uint64_t>();
  EXPECT_LT(steps, 200U * 20U);
  EXPECT_EQ(steps % 20, 0U) << "tests are at the ends of epochs";
  EXPECT_EQ(summary.at("reached").at("steps"), steps);
  EXPECT_EQ(summary.at("reached").at("bytes"), 0);
  // Rows of metrics.csv have nine decimals.
  double seconds = 0.0;
  for (const StepMetrics& row : read_rows<StepMetrics>(folder_ / "alone/metrics.csv", true))
    seconds += row.total;
  EXPECT_NEAR(summary.at("reached").at("seconds").get<double>(), seconds, 1e-6);
  EXPECT_GE(summary.at("accuracy").at("top1"), 0.8);
  EXPECT_GT(summary.at("loss"), 0.0);
  EXPECT_LT(summary.at("loss"), std::log(10.0));
  EXPECT_NE(result.out.find("reached  top1:0.8 after " + std::to_string(steps) + " steps, "),
            std::string::npos)
      << result.out;
  // The weights are those of a training that was told to take as many steps.
  const Words shorter{"--lr",   "0.05", "--momentum", "0.9", "--batches", std::to_string(steps),
                      "--seed", "3"};
  EXPECT_EQ(read_weights(folder_ / "alone/checkpoint.safetensors"), alone(16, shorter));
}

/// All ranks end together at most two rounds behind the test, as if there were no more steps.
TEST_F(Until, RanksEndTogether) {
  const std::vector<std::tuple<std::string, int, Words, std::uint64_t>> cases{
      {"join", 2, {}, 1},
      {"central", 3, {"--server", "central", "--test-every", "0.5"}, 1},
      {"average", 2, {"--average", "4"}, 4},
      {"split", 2, {"--sync", "split"}, 1},
      {"bf16", 2, {"--wire", "bf16"}, 1}};
  for (const auto& [name, ranks, more, round] : cases) {
    SCOPED_TRACE(name);
    const std::string out = train(name, ranks, plus(momentum, more));
    EXPECT_NE(out.find("reached  top1:0.8 after "), std::string::npos) << out;
    const auto summary = summary_of(name);
    const auto steps = summary.at("steps").get<std::uint64_t>();
    EXPECT_EQ(steps, summary.at("reached").at("steps").get<std::uint64_t>() + 2 * round);
    EXPECT_GT(summary.at("reached").at("bytes").get<std::uint64_t>(), 2 * 4 * 431080U);
    Words shorter{"--lr",   "0.05", "--momentum", "0.9", "--batches", std::to_string(steps),
                  "--seed", "3"};
    for (const std::string& word : more) shorter.push_back(word);
    EXPECT_EQ(read_weights(folder_ / (name + "/checkpoint.safetensors")),
              together(ranks, 16, shorter));
  }
}

TEST_F(Until, AsynchronousRanksEndSoonAfter) {
  for (const auto& [name, ranks, server] :
       {std::tuple("async", 2, "distributed"), std::tuple("server", 3, "central")}) {
    SCOPED_TRACE(name);
    const std::string out = train(name, ranks, {"--sync", "none", "--server", server});
    EXPECT_NE(out.find("reached  top1:0.8 after "), std::string::npos) << out;
    EXPECT_LT(summary_of(name).at("steps").get<std::uint64_t>(), 2000U);
  }
}

TEST_F(Until, CheckpointsAreThoseOfTheEnd) {
  for (const char* sync : {"join", "none"}) {
    SCOPED_TRACE(sync);
    const Words more{"--checkpoint-every", "1000", "--sync", sync};
    train(sync, 2, more);
    const auto steps = summary_of(sync).at("steps").get<std::uint64_t>();
    EXPECT_FALSE(std::filesystem::is_empty(folder_ / (std::string(sync) + "/checkpoints")));
    // It goes on from there, to another accuracy.
    for (Process& process :
         start(sync, 2, 16, plus(plus(flags, more), {"--resume", "--until", "top5:1"}), true)) {
      const Result result = process.wait();
      EXPECT_EQ(result.exit, 0) << result.err;
    }
    EXPECT_GT(summary_of(sync).at("steps").get<std::uint64_t>(), steps);
  }
}

/// A supervisor starts the same command again and again.
TEST_F(Until, ARunThatHasReachedItTrainsNoFurther) {
  const Words more{"--checkpoint-every", "1000", "--resume"};
  for (const bool again : {false, true}) {
    const Result result = run(arguments_again("alone", plus(plus(flags, until), more)));
    ASSERT_EQ(result.exit, 0) << result.err;
    train("join", 2, more, again);
  }
  EXPECT_EQ(summary_of("alone").at("steps"), summary_of("alone").at("reached").at("steps"));
  const auto join = summary_of("join");
  EXPECT_LE(join.at("steps").get<std::uint64_t>(),
            join.at("reached").at("steps").get<std::uint64_t>() + 2 * 2 + 1);
}

/// Every test falls on a pause.
TEST_F(Until, RanksThatShareAStepOutAnewEndToo) {
  const std::string out = train("reshare", 2, {"--share", "speeds", "--reshare", "1"});
  EXPECT_NE(out.find("reached  top1:0.8 after "), std::string::npos) << out;
  EXPECT_LT(summary_of("reshare").at("steps").get<std::uint64_t>(), 1000U);
}

TEST_F(Until, WhatIsNotReachedIsSaid) {
  const Result result =
      run(arguments("local", "short", 16, {"--lr", "0", "--epochs", "1", "--until", "top1:1"}));
  EXPECT_EQ(result.exit, 0) << result.err;
  EXPECT_NE(result.out.find("reached  top1:1 in no test\n"), std::string::npos) << result.out;
  EXPECT_EQ(summary_of("short").count("reached"), 0U);
}

TEST_F(Until, OtherWordsAreRefused) {
  for (const char* wrong : {"0.88", "top1", "top1:", "top2:0.5", "top1:1.5", "top1:0", "top1:-1",
                            "top1:nan", "top1:0.5x", "top1:88%"}) {
    const Result result = run(arguments("local", "wrong", 16, {"--until", wrong}));
    EXPECT_EQ(result.exit, 2) << wrong;
    EXPECT_NE(result.err.find("is no accuracy to reach; it is written as top1:0.88"),
              std::string::npos)
        << result.err;
  }
}

TEST_F(Until, CompareTellsWhatItTook) {
  for (const char* name : {"alone", "other"})
    ASSERT_EQ(run(arguments("local", name, 16, plus(plus(flags, until), momentum))).exit, 0);
  train("join", 2, momentum);
  const Words runs{folder_ / "alone", folder_ / "join"};
  Result result = run(plus({"compare"}, runs));
  EXPECT_EQ(result.exit, 0) << result.err;
  EXPECT_NE(result.out.find("To top1:0.8, by the first test that reached it:"), std::string::npos)
      << result.out;
  result = run(plus({"compare", "--until", "top1:1"}, runs));
  EXPECT_EQ(result.exit, 0) << result.err;
  EXPECT_NE(result.out.find("To top1:1,"), std::string::npos) << result.out;
  EXPECT_EQ(run(plus({"compare", "--until", "top1"}, runs)).exit, 2);
  result = run(plus({"report", "--output", folder_ / "page.html"}, runs));
  EXPECT_EQ(result.exit, 0) << result.err;
  const std::string page = read_text(folder_ / "page.html");
  EXPECT_NE(page.find("To a top-1 accuracy of 80.0%, by the first test that reached it:"),
            std::string::npos);
  EXPECT_EQ(page.find("not reached"), std::string::npos);
  EXPECT_NE(page.find("Top-1 by bytes"), std::string::npos);
}

TEST(LastLosses, AreThoseOfTheLastTenth) {
  LastLosses few;
  EXPECT_FALSE(few.mean());
  for (int i = 1; i <= 20; ++i) few.add(i);
  EXPECT_DOUBLE_EQ(*few.mean(), 19.5);
  LastLosses many;
  for (int i = 0; i < 100000; ++i) many.add(i);
  EXPECT_NEAR(*many.mean(), 95000.0, 100000 / 256.0);
}

TEST(TimeToAccuracy, IsThatOfTheFirstTestThatReachesIt) {
  std::vector<StepMetrics> metrics(4, {0, 0, {}, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0});
  for (std::size_t i = 0; i < metrics.size(); ++i) metrics[i].step = i;
  const std::vector<AccuracyRow> tests{{1, 0.5, 10, 0.3, 0.6, {}, 2000000000},
                                       {3, 1.5, 10, 0.7, 0.9, {}, 1000000000},
                                       {4, 2.0, 10, 0.6, 0.8, {}, 1000000000}};
  std::vector<net::StepTraffic> traffic(5);
  for (std::size_t i = 0; i < traffic.size(); ++i) {
    traffic[i].step = i;
    traffic[i].sent = 10;
    traffic[i].received = 1;
  }
  const auto time = [&](const char* target, bool asynchronous, std::uint64_t average = 0) {
    return time_to_accuracy(parse_accuracy_target(target), tests, metrics, &traffic,
                            {asynchronous, average});
  };
  EXPECT_EQ(time("top1:0.7", false)->steps, 3U);
  EXPECT_DOUBLE_EQ(*time("top1:0.7", false)->seconds, 1.5);
  EXPECT_DOUBLE_EQ(*time("top1:0.7", true)->seconds, 3.5) << "others train during the first test";
  EXPECT_EQ(time("top1:0.7", false)->bytes, 33U);
  EXPECT_EQ(time("top1:0.7", false, 1)->bytes, 33U);
  EXPECT_EQ(time("top1:0.7", false, 2)->bytes, 11U) << "the second averaging comes after 4 steps";
  EXPECT_EQ(time("top5:0.6", false, 2)->bytes, 0U);
  EXPECT_EQ(time("top5:0.6", false)->steps, 1U);
  EXPECT_FALSE(time("top1:0.71", false));
  std::swap(traffic[0], traffic[3]);
  EXPECT_EQ(time("top1:0.7", false)->bytes, 33U) << "rows need not be in order";
  std::swap(traffic[0], traffic[3]);
  traffic.erase(traffic.begin());  // The first steps are in a file that was set aside.
  EXPECT_FALSE(time("top1:0.7", false)->bytes);
}

/// Rows are missing after a power failure, or where the first worker has moved to another machine.
TEST(TimeToAccuracy, GoesByTheStepsOfRows) {
  const auto rows = [](const std::vector<std::uint64_t>& steps) {
    std::vector<StepMetrics> metrics;
    for (const std::uint64_t step : steps) {
      metrics.emplace_back();
      metrics.back().step = step;
      metrics.back().total = static_cast<double>(step + 1);
    }
    return metrics;
  };
  const std::vector<AccuracyRow> tests{{2, 1.0, 10, 0.3, 0.6, {}, 0},
                                       {5, 2.5, 10, 0.7, 0.9, {}, 0}};
  const auto time = [&](const char* target, const std::vector<std::uint64_t>& steps,
                        const std::vector<net::StepTraffic>* traffic = nullptr,
                        std::uint64_t average = 0) {
    return time_to_accuracy(parse_accuracy_target(target), tests, rows(steps), traffic,
                            {false, average});
  };
  EXPECT_DOUBLE_EQ(*time("top1:0.7", {4, 0, 1, 3, 2, 5})->seconds, 15.0) << "in any order";
  EXPECT_DOUBLE_EQ(*time("top1:0.7", {0, 1, 1, 2, 3, 4})->seconds, 15.0) << "one of them twice";
  // Each of them has as many rows as the test has steps before it, and not those of its steps.
  for (const std::vector<std::uint64_t>& steps :
       {std::vector<std::uint64_t>{0, 1, 2, 4, 5, 6}, {3, 4, 5, 6, 7}, {0, 1, 2}, {}}) {
    ASSERT_TRUE(time("top1:0.7", steps));
    EXPECT_EQ(time("top1:0.7", steps)->steps, 5U);
    EXPECT_FALSE(time("top1:0.7", steps)->seconds);
    EXPECT_EQ(time("top1:0.7", steps)->bytes, 0U) << "of one machine";
    EXPECT_EQ(reached_report(parse_accuracy_target("top1:0.7"), time("top1:0.7", steps)),
              "reached  top1:0.7 after 5 steps; metrics.csv has not all of them, so their time is "
              "not known\n");
  }
  EXPECT_DOUBLE_EQ(*time("top1:0.3", {0, 1, 2, 4})->seconds, 3.0);
  EXPECT_FALSE(time("top1:0.8", {0, 1, 2, 3, 4}));
  // Bytes do not go by the rows of steps: the last averaging is of fewer.
  std::vector<net::StepTraffic> traffic(3);
  for (std::size_t i = 0; i < traffic.size(); ++i) {
    traffic[i].step = i;
    traffic[i].sent = 10;
  }
  EXPECT_EQ(time("top1:0.7", {0}, &traffic, 2)->bytes, 30U);
  EXPECT_EQ(time("top1:0.3", {0}, &traffic, 2)->bytes, 10U);
}

/// The command says what its accuracy has reached, whatever is left of its steps' times.
TEST_F(Until, IsReachedWhereRowsAreMissing) {
  const Words more{"--checkpoint-every", "1000", "--resume"};
  ASSERT_EQ(run(arguments_again("alone", plus(plus(flags, until), more))).exit, 0);
  const auto steps = summary_of("alone").at("reached").at("steps").get<std::uint64_t>();
  const std::string path = folder_ / "alone/metrics.csv";
  keep_rows<StepMetrics>(path, [](const StepMetrics& row) { return row.step != 3; });
  const Result again = run(arguments_again("alone", plus(plus(flags, until), more)));
  EXPECT_EQ(again.exit, 0) << again.err;
  EXPECT_NE(again.out.find("reached  top1:0.8 after " + std::to_string(steps) + " steps; metrics"),
            std::string::npos)
      << again.out;
  EXPECT_EQ(summary_of("alone").at("reached").at("steps"), steps);
  EXPECT_TRUE(summary_of("alone").at("reached").at("seconds").is_null());
  for (const char* command : {"compare", "report"}) {
    const Result read = run({command, folder_ / "alone"});
    EXPECT_EQ(read.exit, 0) << read.err;
    EXPECT_EQ(read.out.find("not reached"), std::string::npos) << read.out;
  }
  EXPECT_EQ(read_text(folder_ / "alone/report.html").find("not reached"), std::string::npos);
}

}  // namespace
}  // namespace duplex::tools::testing
