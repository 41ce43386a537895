// Trainings by the parts of published recipes: together the same as alone, resumed to the same
// bits, compared between ranks; and what is refused.
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/tools/training_runs.h"

namespace duplex::tools::testing {
namespace {

using Words = std::vector<std::string>;

const Words recipe{"--lr-schedule",
                   "cosine",
                   "--lr",
                   "0.05",
                   "--lr-min",
                   "0.001",
                   "--warmup",
                   "2",
                   "--label-smoothing",
                   "0.1",
                   "--crop",
                   "0.3:1",
                   "--mirror",
                   "--clip-value",
                   "0.01",
                   "--momentum",
                   "0.9",
                   "--pixel-mean",
                   "0.5",
                   "--pixel-stddev",
                   "0.25"};

/// The relative distance of all weights together.
double distance(const Weights& a, const Weights& b) {
  double difference = 0.0, norm = 0.0;
  for (const auto& [name, values] : a)
    for (std::size_t i = 0; i < values.size(); ++i) {
      difference += std::pow(double{values[i]} - double{b.at(name).at(i)}, 2);
      norm += std::pow(double{values[i]}, 2);
    }
  return std::sqrt(difference / norm);
}

class Recipes : public TrainingRuns {
 protected:
  Result local(const std::string& name, const Words& more) const {
    return run(plus({"local", "--net", "lenet", "--datadir", data_.path(), "--logdir",
                     folder_ / name, "--threads", "1", "--batch", "8"},
                    more));
  }
  /// It ends with exit code 2 and one line that has all these words, and leaves no run.
  void expect_refused(const Words& flags, const Words& words) const {
    const Result result = local("refused", flags);
    EXPECT_EQ(result.exit, 2) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    for (const std::string& word : words)
      EXPECT_NE(result.err.find(word), std::string::npos) << word << "\n" << result.err;
    EXPECT_FALSE(std::filesystem::exists(folder_ / "refused"));
  }
  /// A column of a table of a run, by number.
  std::vector<double> column(const std::string& file, std::size_t number) const {
    std::istringstream lines(read_text(folder_ / file));
    std::vector<double> values;
    std::string line;
    std::getline(lines, line);
    while (std::getline(lines, line)) {
      std::istringstream cells(line);
      std::string cell;
      for (std::size_t i = 0; i <= number; ++i) std::getline(cells, cell, ',');
      values.push_back(std::stod(cell));
    }
    return values;
  }
};

TEST_F(Recipes, TogetherHaveTheBitsOfAccumulation) {
  const Words flags = plus(recipe, {"--epochs", "2"});
  const Weights expected = alone(8, plus(flags, {"--accumulate", "3"}));
  EXPECT_EQ(expected, together(3, 8, flags));
  EXPECT_EQ(expected, together(4, 8, plus(flags, {"--server", "central"})));
  EXPECT_EQ(expected, together(3, 24, plus(flags, {"--sync", "split"})));
  EXPECT_LT(distance(expected, together(3, 8, plus(flags, {"--factors", "on"}))), 1e-5);
  const Words moves{"--pad", "4", "--lr", "0.05"};
  EXPECT_EQ(alone(8, plus(moves, {"--accumulate", "2"})), together(2, 8, moves));
  EXPECT_NE(alone(16, moves), alone(16, {"--lr", "0.05"}));
}

TEST_F(Recipes, EveryModeOfDistTakesThem) {
  for (const Words& mode :
       {Words{"--average", "2"}, Words{"--sync", "none"},
        Words{"--sync", "none", "--server", "central"}, Words{"--wire", "lossless"}}) {
    SCOPED_TRACE(mode.back());
    const Weights weights = together(3, 8, plus(plus(recipe, mode), {"--batches", "6"}));
    for (const float value : weights.at("fc2.bias")) EXPECT_TRUE(std::isfinite(value));
  }
}

/// The learning rates of metrics.csv are those of the formula, over the updates of the run.
TEST_F(Recipes, TheRateFallsAlongACosine) {
  const Words flags{"--lr-schedule", "cosine", "--lr", "0.4", "--lr-min", "0.02", "--warmup", "3"};
  ASSERT_EQ(local("one", plus(flags, {"--batches", "11"})).exit, 0);
  ASSERT_EQ(local("two", plus(flags, {"--batches", "23", "--accumulate", "2"})).exit, 0);
  const std::vector<double> one = column("one/metrics.csv", 3), two = column("two/metrics.csv", 3);
  ASSERT_EQ(one.size(), 11U);
  ASSERT_EQ(two.size(), 22U);
  for (std::size_t step = 0; step < 11; ++step) {
    const double part = (static_cast<double>(step) - 3.0) / 8.0;
    const double expected = step < 3 ? 0.4 * static_cast<double>(step + 1) / 3.0
                                     : 0.02 + 0.38 * (1.0 + std::cos(M_PI * part)) / 2.0;
    EXPECT_NEAR(one[step], expected, 1e-6) << step;
    EXPECT_NEAR(two[2 * step], expected, 1e-6) << step;
    EXPECT_NEAR(two[2 * step + 1], expected, 1e-6) << step;
  }
}

/// Weights do not change at a rate of 0.
TEST_F(Recipes, TestsHaveNoSmoothedLabels) {
  const Words flags{"--lr", "0", "--batches", "2", "--accuracy"};
  ASSERT_EQ(local("plain", flags).exit, 0);
  ASSERT_EQ(local("smooth", plus(flags, {"--label-smoothing", "0.9"})).exit, 0);
  EXPECT_EQ(column("plain/accuracy.csv", 5), column("smooth/accuracy.csv", 5));
  EXPECT_NE(column("plain/metrics.csv", 2), column("smooth/metrics.csv", 2));
}

TEST_F(Recipes, TestsReadWhatTheyAreTold) {
  const Words flags{"--lr", "0", "--batches", "1", "--accuracy"};
  std::vector<std::vector<double>> losses;
  for (const Words& more : {Words{}, Words{"--crop", "0.1:0.2"}, Words{"--test-crop", "40"},
                            Words{"--pixel-mean", "0.1"}, Words{"--pixel-stddev", "0.9"}}) {
    const std::string name = "run" + std::to_string(losses.size());
    ASSERT_EQ(local(name, plus(flags, more)).exit, 0);
    losses.push_back(column(name + "/accuracy.csv", 5));
  }
  EXPECT_EQ(losses[0], losses[1]);
  for (std::size_t i = 2; i < losses.size(); ++i) EXPECT_NE(losses[0], losses[i]) << i;
}

/// Without other clips, one update is by the scaled mean gradient.
TEST_F(Recipes, TheNormIsThatOfTheUpdatesGradient) {
  const Words flags{"--lr", "0.05", "--clip-norm", "0.1", "--batches"};
  const Weights whole = alone(24, plus(flags, {"4"}));
  EXPECT_LT(distance(whole, alone(8, plus(flags, {"12", "--accumulate", "3"}))), 2e-5);
  EXPECT_GT(distance(whole, alone(24, {"--lr", "0.05", "--batches", "4"})), 1e-3);
}

TEST_F(Recipes, GoOnToTheSameBits) {
  const Words length{"--batches", "16"};
  for (const Words& flags : {recipe, Words{"--pad", "2", "--clip-norm", "0.5", "--lr", "0.05"}}) {
    const std::string name = flags[0].substr(2), whole = name + "-whole";
    const Words all = plus(flags, length);
    ASSERT_EQ(local(whole, all).exit, 0);
    Process training(
        plus({"local", "--net", "lenet", "--datadir", data_.path(), "--logdir", folder_ / name,
              "--threads", "1", "--batch", "8", "--checkpoint-every", "4"},
             all));
    ASSERT_EQ(training.wait().exit, 0);
    std::filesystem::remove_all(folder_ / (name + "/checkpoints/step-0000000016"));
    const Result rest = local(name, plus(all, {"--resume"}));
    ASSERT_EQ(rest.exit, 0) << rest.err;
    EXPECT_NE(rest.err.find("goes on after 12 steps"), std::string::npos) << rest.err;
    EXPECT_EQ(read_weights(folder_ / (name + "/checkpoint.safetensors")),
              read_weights(folder_ / (whole + "/checkpoint.safetensors")));
  }
}

/// A rate that goes by the length of the run does not go on in a longer one; others do.
TEST_F(Recipes, AnotherLengthDoesNotGoOnAlongTheCosine) {
  const Words cosine{"--lr-schedule", "cosine"};
  ASSERT_EQ(local("run", plus(cosine, {"--batches", "8", "--checkpoint-every", "4"})).exit, 0);
  const Result longer = local("run", plus(cosine, {"--batches", "12", "--resume"}));
  EXPECT_EQ(longer.exit, 2);
  EXPECT_NE(longer.err.find("over 8 updates"), std::string::npos) << longer.err;
  EXPECT_NE(longer.err.find("over 12 updates"), std::string::npos) << longer.err;
  for (const Words& other : {Words{"--label-smoothing", "0.2"}, Words{"--crop", "0.5:1"},
                             Words{"--test-crop", "32"}, Words{"--clip-value", "2"}}) {
    const Result refused = local("run", plus(plus(cosine, other), {"--batches", "8", "--resume"}));
    EXPECT_EQ(refused.exit, 2) << other[0];
    EXPECT_NE(refused.err.find("is of another training"), std::string::npos) << refused.err;
  }
}

TEST_F(Recipes, RanksGoOnAlongTheCosine) {
  const Words flags = plus(recipe, {"--batches", "12", "--checkpoint-every", "4"});
  const auto train = [&](const std::string& name, int ranks, const Words& more, int exit) {
    std::string said;
    for (Process& process : start(name, ranks, 6, plus(flags, more), true)) {
      const Result result = process.wait();
      EXPECT_EQ(result.exit, exit) << result.err;
      said += result.err;
    }
    return said;
  };
  train("whole", 3, {}, 0);
  train("parts", 3, {}, 0);
  std::filesystem::remove_all(folder_ / "parts/checkpoints/step-0000000012");
  train("parts", 3, {"--resume"}, 0);
  EXPECT_EQ(read_weights(folder_ / "parts/checkpoint.safetensors"),
            read_weights(folder_ / "whole/checkpoint.safetensors"));
}

TEST_F(Recipes, SettingsAreWrittenDown) {
  ASSERT_EQ(local("run", plus(recipe, {"--batches", "6", "--test-crop", "32"})).exit, 0);
  const auto config = nlohmann::json::parse(read_text(folder_ / "run/config.json"));
  const std::string settings = config["settings"];
  for (const char* part : {"lr schedule cosine to 0.001 over 6 updates", "warmup 2",
                           "label smoothing 0.1", "crop 0.3:1", "mirror", "clip value 0.01",
                           "test crop 32", "pixel mean 0.5", "pixel stddev 0.25"})
    EXPECT_NE(settings.find(part), std::string::npos) << part << "\n" << settings;
}

/// The second rank has one flag with another value, or one flag more, and the refusal names it.
TEST_F(Recipes, RanksWithOtherSettingsDoNotMeet) {
  const std::vector<std::pair<Words, std::string>> others{
      {{"--label-smoothing", "0.2"}, "label smoothing 0.2"},
      {{"--crop", "0.3:0.9"}, "crop 0.3:0.9"},
      {{"--clip-value", "1"}, "clip value 1"},
      {{"--lr-min", "0.002"}, "lr schedule cosine to 0.002 over 6 updates"},
      {{"--test-crop", "32"}, "test crop 32"},
      {{"--pixel-mean", "0.4"}, "pixel mean 0.4"}};
  for (const auto& [other, said] : others) {
    write_two_nodes();
    std::vector<Process> ranks;
    for (int rank = 0; rank < 2; ++rank) {
      Words own = plus(recipe, {"--batches", "6", "--timeout", "20", "--nodefile",
                                folder_ / "nodes", "--index", std::to_string(rank)});
      if (rank == 1) {
        const auto given = std::find(own.begin(), own.end(), other[0]);
        if (given != own.end()) own.erase(given, given + 2);
        own = plus(own, other);
      }
      ranks.emplace_back(arguments("dist", "meet", 8, own));
    }
    std::string all;
    for (Process& rank : ranks) {
      const Result result = rank.wait();
      EXPECT_NE(result.exit, 0) << other[0];
      all += result.err;
    }
    EXPECT_NE(all.find("'" + said + "'"), std::string::npos) << said << "\n" << all;
  }
}

TEST_F(Recipes, BadInputIsRefused) {
  expect_refused({"--crop", "1:0.08"}, {"--crop '1:0.08'", "reversed"});
  for (const char* crop : {"0:1", "-0.1:1", "0.08:1.5", "nan:1", "0.5:nan", "inf:inf"})
    expect_refused({"--crop", crop}, {"--crop", crop});
  for (const char* crop : {"0.08", "0.08:", ":1", "a:b", "0.1:0.5:1"})
    expect_refused({"--crop", crop}, {"--crop", crop, "0.08:1"});
  expect_refused({"--crop", "0.08:1", "--pad", "4"}, {"--pad", "--crop"});
  expect_refused({"--pad", "28"}, {"--pad 28", "28"});
  expect_refused({"--pad=-1"}, {"--pad", "-1"});
  expect_refused({"--test-crop", "27"}, {"--test-crop 27", "28 pixels or more"});
  expect_refused({"--pixel-mean", "0.5,0.5,0.5"}, {"--pixel-mean has 3 values", "have 1 channels"});
  expect_refused({"--pixel-stddev", "0.5,0.5"}, {"--pixel-stddev has 2 values"});
  expect_refused({"--pixel-mean", "123.7"}, {"--pixel-mean", "0 to 1"});
  expect_refused({"--pixel-stddev", "0"}, {"--pixel-stddev", "0.001 to 1"});
  expect_refused({"--pixel-stddev", "nan"}, {"--pixel-stddev", "nan"});
  for (const char* value : {"-0.1", "1.1", "nan"})
    expect_refused({std::string("--label-smoothing=") + value}, {"--label-smoothing", value});
  for (const char* value : {"0", "-1", "nan", "inf"}) {
    expect_refused({std::string("--clip-value=") + value}, {"--clip-value", value});
    expect_refused({std::string("--clip-norm=") + value}, {"--clip-norm", value});
  }
  expect_refused({"--clip-value", "1", "--clip-norm", "1"}, {"--clip-value", "--clip-norm"});
  expect_refused({"--lr-schedule", "linear"}, {"--lr-schedule", "cosine"});
  expect_refused({"--lr-schedule", "cosine", "--lr-steps", "5"}, {"--lr-steps", "cosine"});
  expect_refused({"--lr-schedule", "cosine", "--lr-factor", "0.5"}, {"--lr-factor", "cosine"});
  expect_refused({"--lr-min", "0.001"}, {"--lr-min needs --lr-schedule cosine"});
  expect_refused({"--lr-schedule", "cosine", "--lr-min", "0.1"}, {"--lr-min", "above"});
  expect_refused({"--lr-schedule", "cosine", "--warmup", "4", "--batches", "4"},
                 {"--warmup 4", "4 updates"});
}

TEST_F(Recipes, TheNormIsRefusedWhereNobodyHasIt) {
  write_two_nodes();
  const Result result = run(arguments(
      "dist", "norm", 8,
      {"--clip-norm", "1", "--batches", "2", "--nodefile", folder_ / "nodes", "--index", "0"}));
  EXPECT_EQ(result.exit, 2);
  EXPECT_NE(result.err.find("--clip-norm needs"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("--clip-value"), std::string::npos) << result.err;
}

}  // namespace
}  // namespace duplex::tools::testing
