// Tests that ranks which have parts of a network train it as one machine does, and send what
// `partition` says.
#include <signal.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>
#include <tuple>

#include "net/ledger/ledger_row.h"
#include "tests/tools/training_runs.h"
#include "tools/run_directory/row_file.h"

namespace duplex::tools::testing {
namespace {

using Flags = std::vector<std::string>;

class CutTraining : public TrainingRuns {
 protected:
  /// A network with groups, LRN, branches and dropout, but without batch normalisation, so that a
  /// sample's result does not depend on the others of its batch.
  std::string network_by_sample() const {
    const std::string path = folder_ / "by_sample.net";
    write_text(path,
               "network By sample\ninput 28x28x1\nclasses 10\n"
               "conv1 conv 5x5/2 same, 12 filters, relu\n"
               "norm1 lrn size 5, alpha 0.5\n"
               "conv2 conv 3x3/2 same, 12 filters, groups 2, relu\n"
               "left conv 1x1 same, 6 filters, relu\n"
               "right conv 3x3 same, 10 filters, relu from conv2\n"
               "both concat from left, right\n"
               "pool max pool 3x3/2 same\n"
               "fc1 linear 24 outputs, relu\n"
               "drop dropout 40%\n"
               "fc2 linear classes outputs\nsoftmax softmax\nend\n");
    return path;
  }
  /// Replays LeNet on so many ranks, which have to end well.
  void replay(const std::string& name, int ranks, const Flags& flags) const {
    write_text(folder_ / (name + ".nodes"), nodes_here(ranks));
    std::vector<Process> processes;
    for (int rank = 0; rank < ranks; ++rank)
      processes.emplace_back(
          plus({"dist", "--net", "lenet", "--nodefile", folder_ / (name + ".nodes"), "--index",
                std::to_string(rank), "--logdir", folder_ / name},
               flags));
    for (Process& process : processes) {
      const Result result = process.wait();
      EXPECT_EQ(result.exit, 0) << result.err;
    }
  }
};

void expect_near(const Weights& weights, const Weights& wanted, const std::string& what) {
  ASSERT_EQ(weights.size(), wanted.size()) << what;
  for (const auto& [name, values] : wanted) {
    const std::vector<float>& own = weights.at(name);
    ASSERT_EQ(own.size(), values.size()) << what;
    float largest = 0.0F, difference = 0.0F;
    for (std::size_t i = 0; i < values.size(); ++i) {
      largest = std::max(largest, std::abs(values[i]));
      difference = std::max(difference, std::abs(values[i] - own[i]));
    }
    EXPECT_LE(difference, 2e-4F * largest) << what << ", " << name;
  }
}

TEST_F(CutTraining, PipelinesHaveTheBitsOfAccumulation) {
  for (const std::string& net : {std::string("lenet"), network_with_statistics()})
    for (const Flags& optimiser :
         {Flags{"--momentum", "0.9"}, Flags{"--optimizer", "adam", "--lr", "0.001"}}) {
      const Flags flags = plus({"--net", net}, optimiser);
      const Weights alone_3 = alone(4, plus(flags, {"--accumulate", "3", "--batches", "9"}));
      for (const int ranks : {2, 3})
        EXPECT_EQ(together(ranks, 12 / ranks,
                           plus(flags, {"--strategy", "pipeline", "--micro-batches", "3",
                                        "--batches", "3"})),
                  alone_3)
            << net << " on " << ranks;
    }
}

TEST_F(CutTraining, EveryStrategyTrainsAsOneMachine) {
  const std::string net = network_by_sample();
  const Flags flags{"--net", net, "--momentum", "0.9", "--batches", "5"};
  const Weights wanted = alone(12, flags);
  for (const char* strategy : {"owt", "filter", "hybrid", "hypergraph", "pipeline"})
    for (const int ranks : {2, 4})
      expect_near(together(ranks, 12 / ranks, plus(flags, {"--strategy", strategy})), wanted,
                  strategy);
  // Codings of what several ranks share, which lossless leaves as it is.
  const Flags owt{"--strategy", "owt"};
  const Weights cut_by_owt = together(4, 3, plus(flags, owt));
  // So does what protects, orders and paces frames.
  ASSERT_EQ(run({"keygen", folder_ / "key"}).exit, 0);
  for (const Flags& wire :
       {Flags{"--wire", "lossless"}, Flags{"--checksum", "on"},
        Flags{"--key", folder_ / "key", "--secure", "on"}, Flags{"--semaphore", "on"},
        Flags{"--semaphore", "off"}, Flags{"--link-rate", "500Mbit/s"}})
    EXPECT_EQ(together(4, 3, plus(flags, plus(owt, wire))), cut_by_owt) << wire[0] << wire[1];
  // The first rank of those that share a parameter may hold all of it.
  for (const Flags& shared : {owt, Flags{"--strategy", "pipeline", "--stages", "2"}})
    EXPECT_EQ(together(4, 3, plus(flags, plus(shared, {"--server", "central"}))),
              together(4, 3, plus(flags, shared)));
  // The first weights come from a file, and an epoch ends in the middle of a step.
  const Flags more_of_it{
      "--net",      net,   "--epochs",  "1",
      "--momentum", "0.9", "--weights", folder_ / "alone1/checkpoint.safetensors"};
  expect_near(together(3, 5, plus(more_of_it, {"--strategy", "hybrid"})), alone(15, more_of_it),
              "hybrid");
  // Micro-batches, of which the mean is taken, and two ranks for each of two stages.
  for (const Flags& more :
       {Flags{"--strategy", "filter", "--micro-batches", "2"},
        Flags{"--strategy", "pipeline", "--stages", "2", "--micro-batches", "2"},
        Flags{"--strategy", "pipeline", "--stages", "3:1", "--micro-batches", "2", "--in-flight",
              "1"},
        Flags{"--strategy", "pipeline", "--stages", "2:1@conv2+0.5:1@fc1", "--micro-batches", "2"},
        // Ranks of unlike speed.
        Flags{"--strategy", "hybrid", "--share", "1:3:2:2"},
        Flags{"--strategy", "pipeline", "--stages", "3:1", "--share", "3:1:2:2"},
        // Linear layers that two or three ranks share exchange factors; rank 0 has none of them.
        Flags{"--strategy", "pipeline", "--stages", "2", "--micro-batches", "3", "--factors", "on"},
        Flags{"--strategy", "pipeline", "--stages", "1:3", "--factors", "auto", "--server",
              "central"}})
    expect_near(together(4, 3, plus(flags, more)), wanted, more[1]);
}

TEST_F(CutTraining, RanksMayComputeOnUnlikeDevices) {
  const Flags flags{"--net", network_by_sample(), "--momentum", "0.9", "--batches", "5"};
  const Weights wanted = alone(8, flags);
  for (const char* strategy : {"hybrid", "pipeline"}) {
    const std::string name = std::string("unlike-") + strategy;
    write_text(folder_ / (name + ".nodes"), nodes_here(2));
    std::vector<Process> ranks;
    for (const char* device : {"reference", "cpu"})
      ranks.emplace_back(arguments(
          "dist", name, 4,
          plus(flags, {"--strategy", strategy, "--nodefile", folder_ / (name + ".nodes"), "--index",
                       std::to_string(ranks.size()), "--device", device, "--timeout", "20"})));
    for (Process& rank : ranks) {
      const Result result = rank.wait();
      EXPECT_EQ(result.exit, 0) << result.err;
    }
    expect_near(read_weights(folder_ / (name + "/checkpoint.safetensors")), wanted, strategy);
  }
}

/// No stage has to divide the samples of a step, of which there may be fewer than ranks.
TEST_F(CutTraining, StepsMayHaveFewerSamplesThanRanks) {
  const Flags flags{"--net", network_by_sample(), "--momentum", "0.9", "--batches", "5"};
  const Weights wanted = alone(2, flags);
  for (const char* strategy : {"filter", "pipeline"}) {
    const Flags cut{"--sync", "split", "--strategy", strategy};
    expect_near(together(3, 2, plus(flags, cut)), wanted, strategy);
    const Result simulated =
        run(plus({"simulate", "--net", "lenet", "--t-grad", "0.01", "--rate", "1Gbit/s",
                  "--workers", "3", "--batch", "2", "--batches", "4"},
                 cut));
    EXPECT_EQ(simulated.exit, 0) << simulated.err;
    EXPECT_EQ(simulated.err, "");
  }
}

/// A simulated run ends as a real one does: the first rank has got the last weights of all others.
TEST_F(CutTraining, IsSimulatedToItsEnd) {
  using Sums = std::map<std::tuple<int, bool, int, std::string>, std::pair<int, std::uint64_t>>;
  const auto frames_of = [&](const std::string& name) {
    Sums sums;  // Frames and bytes, by rank, direction, peer and kind.
    for (int rank = 0; rank < 3; ++rank)
      for (const net::LedgerRow& row : read_rows<net::LedgerRow>(
               folder_ / (name + "/ledger-" + std::to_string(rank) + ".csv"), true)) {
        if (row.kind.find("map") == std::string::npos && row.kind != "weights" &&
            row.kind != "gradient" && row.kind != "factors")
          continue;
        auto& [frames, bytes] = sums[{rank, row.sent, row.peer, row.kind}];
        ++frames;
        bytes += row.bytes;
      }
    return sums;
  };
  const std::vector<Flags> cuts{
      {"--strategy", "pipeline"},
      {"--strategy", "owt"},
      {"--strategy", "filter"},
      {"--strategy", "pipeline", "--stages", "1:2@fc1"},
      {"--strategy", "pipeline", "--stages", "1:2@fc1", "--factors", "on"}};
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    const std::string name = "cut" + std::to_string(i);
    SCOPED_TRACE(name);
    const Flags flags = plus(cuts[i], {"--micro-batches", "2", "--batch", "6"});
    replay(name, 3, plus(flags, {"--device", "replay:0.005", "--batches", "4"}));
    const Result simulated =
        run(plus({"simulate", "--net", "lenet", "--t-grad", "0.005", "--rate", "1Gbit/s",
                  "--workers", "3", "--batches", "12", "--logdir", folder_ / (name + "-simulated")},
                 flags));
    ASSERT_EQ(simulated.exit, 0) << simulated.err;
    EXPECT_EQ(frames_of(name), frames_of(name + "-simulated"));
  }
}

/// The last stage has said goodbye long before the first one has had its last gradient.
TEST_F(CutTraining, SlowStagesEndWell) {
  replay("slow", 3,
         {"--device", "replay:0.4", "--batches", "2", "--strategy", "pipeline", "--micro-batches",
          "2"});
}

/// A step may take longer than the time-out, as long as layers get done.
TEST_F(CutTraining, StepsMayBeLongerThanTheTimeout) {
  replay("long", 2,
         {"--device", "replay:3", "--batches", "1", "--strategy", "pipeline", "--timeout", "3"});
}

/// Bytes of step 1 that all ranks have sent, by their ledgers: maps, gradients, and the weights
/// that answer them.
std::int64_t bytes_sent(const std::string& folder, int ranks) {
  constexpr std::int64_t header = 32, loss = 4;
  std::int64_t sum = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    std::istringstream rows(read_text(folder + "/ledger-" + std::to_string(rank) + ".csv"));
    std::string row;
    while (std::getline(rows, row)) {
      std::vector<std::string> cells;
      std::istringstream line(row);
      for (std::string cell; std::getline(line, cell, ',');) cells.push_back(cell);
      if (cells[1] != "sent") continue;
      const bool forth = cells[3] == "map" || cells[3] == "map-gradient" || cells[3] == "gradient";
      const std::int64_t payload =
          forth || cells[3] == "weights" ? std::stoll(cells[7]) - header : 0;
      if (cells[3] == "map" && payload == loss) continue;
      if ((forth && cells[4] == "1") || (cells[3] == "weights" && cells[4] == "2")) sum += payload;
    }
  }
  return sum;
}

TEST_F(CutTraining, SendsWhatPartitionSays) {
  const auto said = [](int ranks) {
    const Result result =
        run({"partition", "--net", "lenet", "--input", "28", "--workers", std::to_string(ranks),
             "--batch", std::to_string(4 * ranks), "--classes", "10", "--output", "json"});
    EXPECT_EQ(result.exit, 0) << result.err;
    std::map<std::string, std::int64_t> bytes;
    const nlohmann::json answer = nlohmann::json::parse(result.out);
    for (const nlohmann::json& each : answer["strategies"]) bytes[each["strategy"]] = each["bytes"];
    return bytes;
  };
  // `partition` would leave one of four ranks without a stage.
  const std::map<int, std::map<std::string, std::int64_t>> bytes{{2, said(2)}, {4, said(4)}};
  for (const char* strategy : {"owt", "filter", "hybrid", "hypergraph", "pipeline"}) {
    const int ranks = strategy == std::string("pipeline") ? 2 : 4;
    for (Process& rank : start(strategy, ranks, 4, {"--strategy", strategy, "--batches", "4"})) {
      const Result result = rank.wait();
      EXPECT_EQ(result.exit, 0) << result.err;
    }
    EXPECT_EQ(bytes_sent(folder_ / strategy, ranks), bytes.at(ranks).at(strategy)) << strategy;
  }
}

TEST_F(CutTraining, ReplaysAndTests) {
  std::vector<Process> ranks =
      start("accuracy", 3, 4,
            {"--strategy", "pipeline", "--micro-batches", "2", "--epochs", "1", "--accuracy"});
  const Result first = ranks[0].wait();
  EXPECT_EQ(first.exit, 0) << first.err;
  EXPECT_NE(first.out.find("of 20 test images after 8 steps"), std::string::npos) << first.out;
  for (const std::size_t rank : {1U, 2U}) EXPECT_EQ(ranks[rank].wait().exit, 0);

  replay("replay", 3,
         {"--device", "replay:0.05", "--batches", "3", "--strategy", "filter", "--micro-batches",
          "2"});
}

TEST_F(CutTraining, RefusesWhatCannotBe) {
  struct Refusal {
    Process process;
    std::string why;
  };
  std::vector<Refusal> refusals;  // They tell their peers for a second, all at once.
  const auto refuse = [&](const Flags& flags, const std::string& why, int ranks = 2,
                          int batch = 4) {
    const std::string name = "refused" + std::to_string(refusals.size());
    write_text(folder_ / name, nodes_here(ranks));
    refusals.push_back(
        {Process(arguments(
             "dist", name + ".run", batch,
             plus({"--nodefile", folder_ / name, "--index", "0", "--timeout", "1"}, flags))),
         why});
  };
  const auto pipeline = [](const Flags& flags) { return plus({"--strategy", "pipeline"}, flags); };
  refuse({"--strategy", "rows"}, "--strategy");
  refuse({"--strategy", "auto"}, "launch --plan auto measures them, plans and trains");
  refuse({"--stages", "2"}, "--stages goes with --strategy pipeline");
  refuse({"--strategy", "filter", "--stages", "2"}, "--stages goes with --strategy pipeline");
  refuse({"--micro-batches", "2"}, "--micro-batches goes with a --strategy");
  refuse(pipeline({"--micro-batches", "3"}),
         "the 8 images of a step cannot be cut into 3 micro-batches");
  refuse(pipeline({"--stages", "3"}), "3 stages cannot be shared out evenly");
  refuse(pipeline({"--stages", "2:1"}), "stages 2:1 are for 3 ranks, and there are 2");
  refuse(pipeline({"--stages", "1:1@conv9"}), "no stage can begin with 'conv9'");
  refuse(pipeline({"--stages", "1:1@conv1"}), "leaves the one before it no layer");
  refuse(pipeline({"--stages", "7:1", "--micro-batches", "8"}),
         "a micro-batch of 4 images is too small for the 7 ranks of a stage", 8);
  for (const char* stages : {"0", "a", "2:", ":2", "2@conv1", "1:1@", "1:1@conv2+1", "1:1@conv2+",
                             "1:1@conv2:1", "123456"})
    refuse(pipeline({"--stages", stages}), "stages '" + std::string(stages) + "'");
  refuse({"--in-flight", "3"}, "--in-flight goes with a --strategy");
  refuse(pipeline({"--in-flight", "0"}), "--in-flight");
  refuse(pipeline({"--epochs", "1"}), "a step takes 128 images, and there are 96", 2, 64);
  for (const Flags& flags : {Flags{"--sync", "none"}, Flags{"--average", "2"},
                             Flags{"--share", "auto", "--reshare", "1"}, Flags{"--slots", "2"},
                             Flags{"--overlap", "off"}, Flags{"--ema", "0.9"}, Flags{"--profile"}})
    refuse(pipeline(flags), "does not go with --strategy pipeline");
  refuse(pipeline({"--factors", "on"}), "no ranks share a linear layer");
  const std::string one = folder_ / "one.net", pool = folder_ / "pool.net";
  write_text(one,
             "network One\ninput 28x28x1\nclasses 10\nfc linear classes outputs\n"
             "softmax softmax\nend\n");
  refuse(pipeline({"--net", one}), "3 stages are more than the network's 2 layers", 3);
  write_text(pool,
             "network Pool\ninput 28x28x1\nclasses 10\npool max pool 2x2/2 same\n"
             "fc linear classes outputs\nsoftmax softmax\nend\n");
  refuse(pipeline({"--net", pool}), "the output of pool would cross", 3);
  for (Refusal& refusal : refusals) {
    const Result result = refusal.process.wait();
    EXPECT_EQ(result.exit, 2) << refusal.why << ": " << result.err;
    EXPECT_NE(result.err.find(refusal.why), std::string::npos) << refusal.why << ": " << result.err;
  }
}

/// The parts of this network take terabytes, which a rank says before it takes any.
TEST_F(CutTraining, RefusesAPartThatDoesNotFit) {
  const std::string net = folder_ / "large.net";
  std::string text =
      "network Large\ninput 28x28x1\nclasses 10\nconv conv 1x1 same, 10000 filters, relu\n";
  for (int i = 0; i < 600; ++i)
    text += "conv" + std::to_string(i) + " conv 1x1 same, 10000 filters, groups 10000\n";
  write_text(net, text + "fc linear classes outputs\nsoftmax softmax\nend\n");
  write_text(folder_ / "nodes", nodes_here(2));
  const Result result =
      run(arguments("dist", "large.run", 48,
                    {"--net", net, "--strategy", "pipeline", "--nodefile", folder_ / "nodes",
                     "--index", "0", "--timeout", "1", "--batches", "1"}));
  EXPECT_EQ(result.exit, 1) << result.err;
  EXPECT_NE(result.err.find("dist: the part of rank 0 takes "), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("duplex plan --fits"), std::string::npos) << result.err;
}

TEST_F(CutTraining, ARankThatIsLostIsNamed) {
  std::vector<Process> ranks =
      start("lost", 3, 4, {"--strategy", "pipeline", "--micro-batches", "2", "--epochs", "2000"});
  await_bytes(folder_ / "lost/metrics.csv", 500);
  ranks[1].kill(SIGKILL);
  for (const std::size_t rank : {0U, 2U}) {
    const Result result = ranks[rank].wait();
    EXPECT_EQ(result.exit, 3) << result.err;
    EXPECT_NE(result.err.find("rank 1 ("), std::string::npos) << result.err;
  }
}

}  // namespace
}  // namespace duplex::tools::testing
