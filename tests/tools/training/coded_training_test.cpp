// Trainings whose weights and gradients cross the wire packed without loss, against the same ones
// in float32; and the gradients of a replay, which have to pack as those of a training.
#include <cmath>
#include <sstream>

#include "net/coding/coding.h"
#include "tests/tools/training_runs.h"
#include "tools/training/replayed_gradients.h"

namespace duplex::tools::testing {
namespace {

using Words = std::vector<std::string>;

class CodedTraining : public TrainingRuns {};

TEST_F(CodedTraining, LosslessHasTheBitsOfFloat32InEveryMode) {
  const std::vector<Words> modes{
      {"--momentum", "0.9"},
      {"--server", "central", "--optimizer", "adam"},
      {"--sync", "split", "--momentum", "0.9", "--nesterov"},
      {"--sync", "split", "--server", "central", "--semaphore", "on", "--weight-decay", "0.01"},
      {"--average", "2", "--momentum", "0.9"},
      {"--overlap", "off", "--shards", "tensors", "--optimizer", "adam"},
      {"--share", "3:2:1", "--momentum", "0.9"}};
  for (const Words& mode : modes) {
    SCOPED_TRACE(mode[0] + " " + mode[1]);
    Words plain = mode;
    plain.insert(plain.end(), {"--batches", "6"});
    Words packed = plain;
    packed.insert(packed.end(), {"--wire", "lossless"});
    EXPECT_EQ(together(3, 6, packed), together(3, 6, plain));
  }
}

/// The first worker's ledger has packed weights, and packed gradients, of every step but the first.
TEST_F(CodedTraining, BothDirectionsTakeFewerBytes) {
  together(2, 6, {"--batches", "6", "--wire", "lossless"});
  const std::string text = read_text(folder_ / "together1/ledger-0.csv");
  double bytes[2] = {0.0, 0.0}, saved[2] = {0.0, 0.0};
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line)) {
    std::vector<std::string> cells;
    std::istringstream row(line);
    for (std::string cell; std::getline(row, cell, ',');) cells.push_back(cell);
    const bool weights = cells[3] == "weights";
    if ((!weights && cells[3] != "gradient") || (weights && cells[4] == "0")) continue;
    bytes[weights ? 0 : 1] += std::stod(cells[7]);
    saved[weights ? 0 : 1] += std::stod(cells[11]);
  }
  for (const int what : {0, 1}) {
    EXPECT_GT(bytes[what], 0.0);
    EXPECT_GT(saved[what], 0.05 * (bytes[what] + saved[what])) << what;
  }
}

/// A replay's values come to about the parts that simulate and plan take.
TEST(ReplayedGradients, PackLikeThoseOfATraining) {
  constexpr std::size_t count = 100000;
  std::vector<float> weights(count), gradients(count);
  for (std::size_t i = 0; i < count; ++i)
    weights[i] = 0.05F * static_cast<float>(std::sin(static_cast<double>(i * i)));
  Span span;
  span.name = "conv.weight";
  span.count = count;
  span.weights = weights.data();
  span.gradient = gradients.data();
  OptimiserSpec optimiser;
  optimiser.momentum = 0.9F;
  draw_gradients({span}, optimiser, 0.02);

  std::vector<std::uint8_t> bytes(net::coded_bytes(net::Coding::lossless, count) +
                                  net::coding_slack);
  const auto part = [&](std::size_t size) {
    return static_cast<double>(size) / static_cast<double>(count * sizeof(float));
  };
  const net::PackedParts usual;
  EXPECT_NEAR(part(net::encode(net::Coding::lossless, gradients.data(), count, bytes.data())),
              usual.gradients, 0.06);
  std::vector<float> velocity(count);
  float* state[] = {velocity.data()};
  std::vector<float> before;
  for (std::uint64_t step = 0; step < 30; ++step) {
    before = weights;
    update({optimiser, 0.02F, step + 1}, count, weights.data(), gradients.data(), state);
  }
  EXPECT_NEAR(part(net::encode_weights(weights.data(), before.data(), count, bytes.data())),
              usual.weights, 0.06);
}

}  // namespace
}  // namespace duplex::tools::testing
