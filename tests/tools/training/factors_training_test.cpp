// Trainings of several ranks that exchange the factors of linear layers, against those that
// exchange whole gradients and weights; and flags that do not go together.
#include <cmath>

#include "tests/tools/training_runs.h"

namespace duplex::tools::testing {
namespace {

using Words = std::vector<std::string>;

Words plus(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

class FactorsTraining : public TrainingRuns {};

double distance(const Weights& a, const Weights& b) {
  double sum = 0.0;
  for (const auto& [name, values] : a)
    for (std::size_t i = 0; i < values.size(); ++i)
      sum += std::pow(double{values[i]} - double{b.at(name)[i]}, 2);
  return std::sqrt(sum);
}

/// The weights differ by rounding from those of whole gradients: by less than a thousandth of the
/// way that the training has gone.
TEST_F(FactorsTraining, IsThatOfWholeGradientsButForRounding) {
  const std::vector<Words> modes{
      {"--momentum", "0.9"},
      {"--optimizer", "adam", "--lr", "0.001"},
      {"--sync", "split", "--momentum", "0.9", "--nesterov", "--weight-decay", "0.01"},
      {"--share", "3:2:1", "--momentum", "0.9"},
      {"--overlap", "off", "--shards", "tensors"}};
  for (const Words& mode : modes) {
    SCOPED_TRACE(mode[0] + " " + mode[1]);
    const Weights begin = together(3, 6, plus(mode, {"--batches", "1"}));
    const Weights whole = together(3, 6, plus(mode, {"--batches", "6"}));
    const Weights factored = together(3, 6, plus(mode, {"--batches", "6", "--factors", "on"}));
    EXPECT_LT(distance(factored, whole), 1e-3 * distance(begin, whole));
    EXPECT_EQ(together(3, 6, plus(mode, {"--batches", "6", "--factors", "on"})), factored)
        << "two runs differ";
  }
}

TEST_F(FactorsTraining, PackedFactorsHaveTheSameBits) {
  const Words flags{"--factors", "on", "--momentum", "0.9", "--batches", "5"};
  EXPECT_EQ(together(3, 6, plus(flags, {"--wire", "lossless"})), together(3, 6, flags));
}

TEST_F(FactorsTraining, RefusesWhatDoesNotGoTogether) {
  write_two_nodes();
  const auto refused = [&](const Words& flags, const std::string& says) {
    const Result result =
        run(plus({"dist", "--datadir", data_.path(), "--nodefile", folder_ / "nodes", "--index",
                  "0", "--batches", "2", "--factors", "on", "--timeout", "1"},
                 flags));
    EXPECT_EQ(result.exit, 2) << result.err;
    EXPECT_NE(result.err.find(says), std::string::npos) << result.err;
  };
  for (const Words& flags : {Words{"--server", "central"}, Words{"--sync", "none"},
                             Words{"--average", "2"}, Words{"--semaphore", "on"}})
    refused(plus({"--net", "lenet"}, flags), "--factors on goes with --sync join or split");
  refused({"--net", "squeezenet", "--input", "48"}, "has no linear layer");
}

/// Ranks whose --factors differ do not train together.
TEST_F(FactorsTraining, RanksCompareTheirFlags) {
  write_two_nodes();
  const auto rank = [&](int index, const std::string& factors) {
    return Process(arguments("dist", "run", 6,
                             {"--nodefile", folder_ / "nodes", "--index", std::to_string(index),
                              "--batches", "2", "--timeout", "20", "--factors", factors}));
  };
  Process one = rank(0, "on"), other = rank(1, "off");
  const Result first = one.wait(), second = other.wait();
  EXPECT_NE(first.exit, 0);
  EXPECT_NE(second.exit, 0);
  EXPECT_NE((first.err + second.err).find("factors on"), std::string::npos)
      << first.err << second.err;
}

}  // namespace
}  // namespace duplex::tools::testing
