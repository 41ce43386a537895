// Trainings whose ranks have several slots, against those of as many ranks with one each; and slots
// that cannot be.
#include <cstdint>
#include <nlohmann/json.hpp>

#include "core/device.h"
#include "net/ledger/ledger_row.h"
#include "tests/tools/training_runs.h"
#include "tools/run_directory/row_file.h"

namespace duplex::tools::testing {
namespace {

using Words = std::vector<std::string>;

class SlotsTraining : public TrainingRuns {
 protected:
  /// Trains on the machines of a nodefile, in `name`.
  Result launched(const std::string& name, const std::string& nodes, int batch,
                  const Words& more) const {
    write_text(folder_ / (name + ".nodes"), nodes);
    Words words = arguments("dist", name, batch, plus({"--timeout", "20"}, more));
    words.erase(words.begin());
    return run(plus({"launch", "--nodefile", folder_ / (name + ".nodes"), "--"}, words));
  }
  Weights weights_of(const std::string& name) const {
    return read_weights(folder_ / (name + "/checkpoint.safetensors"));
  }
};

constexpr const char* too_few =
    "a slot needs a core of its own, and this process may use one core only";

/// The slots' gradients are added before those of the ranks behind them, in the same order in which
/// as many ranks' are, so the weights have the same bits.
TEST_F(SlotsTraining, HaveTheBitsOfAsManyRanks) {
  if (usable_cores() < 2) GTEST_SKIP() << too_few;
  const std::string one_apart = nodes_here(3, {2});
  const std::vector<Words> modes{
      {"--sync", "join", "--momentum", "0.9"},
      {"--sync", "split", "--momentum", "0.9", "--shards", "tensors"},
      {"--sync", "join", "--overlap", "off", "--optimizer", "adam", "--lr", "0.001"},
      {"--sync", "join", "--wire", "lossless", "--momentum", "0.9"},
      {"--sync", "join", "--factors", "on", "--momentum", "0.9"},
  };
  for (const Words& mode : modes) {
    SCOPED_TRACE(mode[1] + " " + mode[2] + " " + mode[3]);
    const Words flags = plus(mode, {"--batches", "5"});
    const Result result = launched("slots", one_apart, 8, flags);
    ASSERT_EQ(result.exit, 0) << result.err;
    EXPECT_EQ(weights_of("slots"), together(4, 8, flags));
    std::filesystem::remove_all(folder_ / "slots");
  }
}

TEST_F(SlotsTraining, HaveTheBitsOfAsManyRanksOfACentralServer) {
  if (usable_cores() < 2) GTEST_SKIP() << too_few;
  const Words flags{"--server", "central", "--momentum", "0.9", "--batches", "5"};
  // The first slot of the first line is the server.
  const Result result = launched("slots", nodes_here(2, {3}), 8, flags);
  ASSERT_EQ(result.exit, 0) << result.err;
  EXPECT_EQ(weights_of("slots"), together(4, 8, flags));
}

/// A single rank with two slots trains as two ranks do.
TEST_F(SlotsTraining, AloneHaveTheBitsOfAsManyRanks) {
  if (usable_cores() < 2) GTEST_SKIP() << too_few;
  for (const char* factors : {"off", "on"})
    for (const char* sync : {"join", "split"}) {
      const Words flags{"--sync",     sync,  "--factors", factors,
                        "--momentum", "0.9", "--batches", "5"};
      const std::string name = std::string(sync) + factors;
      const Result result = launched(name, nodes_here(1, {2}), 8, flags);
      ASSERT_EQ(result.exit, 0) << result.err;
      EXPECT_EQ(weights_of(name), together(2, 8, flags)) << name;
    }
}

TEST_F(SlotsTraining, GoOnFromACheckpoint) {
  if (usable_cores() < 2) GTEST_SKIP() << too_few;
  const std::string nodes = nodes_here(2, {2});
  const Words flags{"--momentum", "0.9", "--checkpoint-every", "3"};
  ASSERT_EQ(launched("whole", nodes, 8, plus(flags, {"--batches", "6"})).exit, 0);
  ASSERT_EQ(launched("parts", nodes, 8, plus(flags, {"--batches", "3"})).exit, 0);
  const Result rest = launched("parts", nodes, 8, plus(flags, {"--batches", "6", "--resume"}));
  ASSERT_EQ(rest.exit, 0) << rest.err;
  EXPECT_NE(rest.err.find("goes on after 3 steps"), std::string::npos) << rest.err;
  EXPECT_EQ(weights_of("parts"), weights_of("whole"));
  EXPECT_EQ(rest.err.find("images from here on"), std::string::npos) << rest.err;
  // As many ranks with fewer slots have another batch.
  const Result fewer =
      launched("parts", nodes_here(2), 8, plus(flags, {"--batches", "9", "--resume"}));
  ASSERT_EQ(fewer.exit, 0) << fewer.err;
  EXPECT_NE(fewer.err.find("goes on after 6 steps: an update is by 16 images from here on, "
                           "and was by 24 on average"),
            std::string::npos)
      << fewer.err;
}

/// Bytes of gradients that a rank has sent in a step, by its ledger.
std::uint64_t gradient_bytes(const std::string& directory, int rank, std::uint64_t step) {
  std::uint64_t bytes = 0;
  for (const net::LedgerRow& row :
       read_rows<net::LedgerRow>(directory + "/ledger-" + std::to_string(rank) + ".csv", true))
    if (row.sent && row.kind == "gradient" && row.step == step) bytes += row.bytes;
  return bytes;
}

/// A machine's link carries as many gradients with four slots as with one.
TEST_F(SlotsTraining, SendOneGradientFromAMachine) {
  const Words flags{"--device", "replay:0.02", "--batches", "4"};
  const Result slots = launched("slots", nodes_here(5, {4}), 8, flags);
  ASSERT_EQ(slots.exit, 0) << slots.err;
  ASSERT_EQ(launched("singles", nodes_here(5), 8, flags).exit, 0);
  const std::uint64_t sent = gradient_bytes(folder_ / "slots", 0, 2);
  EXPECT_GT(sent, 1000000U);
  for (const char* run : {"slots", "singles"})
    for (int rank = 0; rank < 5; ++rank)
      EXPECT_NEAR(static_cast<double>(gradient_bytes(folder_ / run, rank, 2)),
                  static_cast<double>(sent), 0.01 * static_cast<double>(sent))
          << run << " " << rank;
  const auto config = nlohmann::json::parse(read_text(folder_ / "slots/config.json"));
  EXPECT_EQ(config.at("slots"), (std::vector<int>{4, 1, 1, 1, 1}));
  EXPECT_EQ(nlohmann::json::parse(read_text(folder_ / "slots/summary.json")).at("slots"), 8);
}

/// The run ends when one slot fails.
TEST_F(SlotsTraining, EndTogetherWhereOneDiverges) {
  if (usable_cores() < 2) GTEST_SKIP() << too_few;
  const Result result =
      launched("slots", nodes_here(2, {2}), 8, {"--batches", "50", "--lr", "1e30"});
  EXPECT_EQ(result.exit, 1) << result.err;
  EXPECT_NE(result.err.find("no longer finite"), std::string::npos) << result.err;
}

TEST_F(SlotsTraining, RefuseWhatCannotBe) {
  write_text(folder_ / "nodes", nodes_here(2, {2}));
  const auto refused = [&](const Words& flags, const std::string& says) {
    const Result result =
        run(plus({"dist", "--datadir", data_.path(), "--net", "lenet", "--index", "0", "--batch",
                  "4", "--batches", "2", "--timeout", "1", "--nodefile", folder_ / "nodes"},
                 flags));
    EXPECT_EQ(result.exit, 2) << result.err;
    EXPECT_NE(result.err.find(says), std::string::npos) << result.err;
  };
  refused({"--slots", "3"}, "--slots 3 and the slots of nodefile");
  refused({"--share", "2:1"}, "--share goes with as many slots on each machine, not 2:1");
  refused({"--sync", "split"}, "take a batch that is a multiple of the 3 slots");
  write_text(folder_ / "nodes", nodes_here(2));
  refused({"--slots", "1000"}, "1000 slots, but this process may use ");
  refused({"--slots", "2", "--sync", "none"}, "slots go with --sync join and split");
  refused({"--slots", "2", "--average", "2"}, "slots go with --sync join and split");
  refused({"--slots", "0"}, "--slots");
}

}  // namespace
}  // namespace duplex::tools::testing
