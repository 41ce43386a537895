// Tests what cuts of networks come to: by hand for a small one, and beside an earlier study for
// those of models/.
#include "tools/partition/cut.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <sstream>

#include "models/registry.h"
#include "tests/temporary_folder.h"
#include "tests/tools/program.h"
#include "tools/partition/cut_table.h"
#include "tools/partition/grids.h"

namespace duplex::tools::testing {
namespace {

/// 40 parameters in the convolution, 520 in the linear layer.
Model small() {
  Model model("Small", {1, 1, 4, 4});
  const Model::Node x = model.conv("conv", model.input(), 4, same(3));
  model.softmax("softmax", model.linear("fc", x, 8, false));
  return model;
}

TileSpec spec_of(std::int64_t batch, int shards) {
  TileSpec spec;
  spec.batch = batch;
  spec.shards = spec.blocks = shards;
  return spec;
}

const Cut& find(const std::vector<Cut>& cuts, const std::string& strategy) {
  for (const Cut& cut : cuts)
    if (cut.strategy == strategy) return cut;
  throw std::runtime_error("there is no cut " + strategy);
}

TEST(Cuts, OfASmallNetworkAreAsByHand) {
  const Model model = small();
  const Tiles tiles(model, spec_of(4, 2));
  const Speeds two(2, 1.0);
  // Data: all 560 parameters' gradients go one way, and the new weights the other.
  EXPECT_EQ(cut_of(tiles, "data", place_by_samples(tiles, two), 2).bytes(), 2 * 4 * 560);
  // Filter: each of the convolution's 4 tiles, 2 channels of 16 pixels of 2 samples, goes to the
  // other machine, and its gradient comes back. Of the linear layer's, 4 outputs of 2 samples, half
  // are computed where the loss is not.
  const std::int64_t maps = 4 * (2 * 16 * 2 * 4) * 2, outputs = 2 * (4 * 2 * 4) * 2;
  EXPECT_EQ(cut_of(tiles, "filter", place_by_channels(tiles, two), 2).bytes(), maps + outputs);
  // One weird trick: the convolution's parameters are exchanged beside these.
  const Cut owt = cut_of(tiles, "owt", place_by_one_weird_trick(tiles, model, two), 2);
  EXPECT_EQ(owt.bytes(), 2 * 4 * 40 + maps + outputs);
  EXPECT_EQ(owt.units[0][0].maps_out, maps / 4);
  EXPECT_EQ(owt.units[0][0].gradients_in, maps / 4);
  EXPECT_EQ(owt.units[0][0].weights_out, 4 * 40);
  EXPECT_EQ(owt.units[0][0].parameters, 4 * 40);
  EXPECT_EQ(owt.units[1][0].parameters, 4 * 260);
  // By layers: the convolution's output crosses, once forward and once back.
  const Cut layers = cut_of(tiles, "pipeline", place_by_layers(tiles, two), 2);
  EXPECT_EQ(layers.bytes(), 2 * 4 * 64 * 4);
  EXPECT_EQ(layers.ranks[0].work, 64 * 9 * 4);
  EXPECT_EQ(layers.ranks[1].work, 520 * 4 - 8 * 4);
}

TEST(Cuts, CountTheBytesThatTheHypergraphCosts) {
  for (const char* net : {"lenet", "alexnet", "googlenet", "resnet34", "squeezenet"}) {
    models::ModelOptions options;
    options.auxiliary = true;
    const Model model = models::build(net, options);
    const Tiles tiles(model, spec_of(30, 4));
    const Hypergraph graph = tiles.hypergraph();
    CutSpec spec;
    spec.speeds = {1.0, 1.0, 0.5, 0.25};
    spec.starts = 1;
    spec.imbalance = 0.2;
    const std::vector<Cut> cuts = all_cuts(tiles, tiles.hypergraph(), model, spec);
    ASSERT_EQ(cuts.size(), 6U);
    for (const Cut& cut : cuts) {
      EXPECT_EQ(cut.bytes(), connectivity_cost(graph, cut.parts, 4)) << net << " " << cut.strategy;
      std::int64_t in = 0, work = 0;
      for (const CutShare& rank : cut.ranks) {
        in += rank.in();
        work += rank.work;
      }
      EXPECT_EQ(in, cut.bytes()) << net << " " << cut.strategy;
      EXPECT_EQ(work, graph.total_weight()) << net << " " << cut.strategy;
    }
    EXPECT_LE(cuts.back().imbalance(spec.speeds), 0.2) << net;
    for (const Cut& cut : cuts) {
      if (cut.imbalance(spec.speeds) <= 0.2) {
        EXPECT_LE(cuts.back().bytes(), cut.bytes()) << net << " " << cut.strategy;
      }
    }
  }
}

struct Known {
  const char* net;
  std::int64_t batch;
  double data, owt, unified;  ///< Megabytes an iteration on 4 machines.
};

class KnownVolumes : public ::testing::TestWithParam<Known> {};

/// The earlier study cut the same networks with Zoltan.
TEST_P(KnownVolumes, AreReached) {
  const Known& known = GetParam();
  const Model model = models::build(known.net, {});
  const Tiles tiles(model, spec_of(known.batch, 16));
  CutSpec spec;
  spec.speeds.assign(4, 1.0);
  spec.threads = 2;
  spec.starts = 4;
  const std::vector<Cut> cuts = all_cuts(tiles, tiles.hypergraph(), model, spec);
  const auto megabytes = [&](const char* strategy) {
    return static_cast<double>(find(cuts, strategy).bytes()) * 1e-6;
  };
  EXPECT_NEAR(megabytes("data"), known.data, 0.005 * known.data);
  EXPECT_NEAR(megabytes("owt"), known.owt, 0.025 * known.owt);
  EXPECT_LE(megabytes("hybrid"), megabytes("owt"));
  EXPECT_LE(megabytes("hybrid"), megabytes("data"));
  EXPECT_LE(find(cuts, "hypergraph").imbalance(spec.speeds), 0.05);
  EXPECT_LE(megabytes("hypergraph"), 1.15 * known.unified);
}

INSTANTIATE_TEST_SUITE_P(
    Networks, KnownVolumes,
    ::testing::Values(Known{"alexnet", 128, 1466, 113, 67}, Known{"vgg16e", 32, 3448, 506, 210},
                      Known{"vgg16e", 128, 3448, 583, 500}, Known{"googlenet", 128, 168, 147, 144},
                      Known{"resnet34", 128, 523, 512, 121}, Known{"squeezenet", 128, 30, 30, 26}),
    [](const auto& info) { return info.param.net + std::to_string(info.param.batch); });

TEST(Grids, OfOneKindAreTheNamedStrategies) {
  const Model model = models::build("alexnet", {});
  const Tiles tiles(model, spec_of(24, 12));
  const Speeds speeds{1.0, 1.0, 2.0, 1.0, 1.0, 2.0};
  EXPECT_EQ(place_by_grids(tiles, speeds, Grids(tiles.units().count(), 6)),
            place_by_samples(tiles, speeds));
  EXPECT_EQ(place_by_grids(tiles, speeds, Grids(tiles.units().count(), 1)),
            place_by_channels(tiles, speeds));
}

TEST(SharedOut, ItemsFollowSpeeds) {
  EXPECT_EQ(shared_out(4, {1.0, 1.0}), (std::vector<int>{0, 0, 1, 1}));
  EXPECT_EQ(shared_out(4, {3.0, 1.0}), (std::vector<int>{0, 0, 0, 1}));
  EXPECT_EQ(shared_out(2, {1.0, 1.0, 1.0, 1.0}), (std::vector<int>{1, 3}));
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(Grids, SaveBytes) {
  for (const char* net : {"alexnet", "resnet34"}) {
    const Model model = models::build(net, {});
    const Tiles tiles(model, spec_of(128, 8));
    const Speeds speeds(8, 1.0);
    const auto bytes = [&](const Grids& grids) {
      return cut_of(tiles, "", place_by_grids(tiles, speeds, grids), 8).bytes();
    };
    const Grids samples(tiles.units().count(), 8);
    EXPECT_LT(bytes(best_grids(tiles, speeds, samples)), bytes(samples)) << net;
  }
}

TEST(Pipelines, HaveRunsOfLayersAndIdleRanksWhereThereAreTooMany) {
  const Model model = small();
  const Tiles tiles(model, spec_of(3, 8));  // 3 units, and 3 shards.
  for (const Speeds& speeds : {Speeds(8, 1.0), Speeds{1.0, 1e-6, 1.0}}) {
    const Parts parts = place_by_layers(tiles, speeds);
    const int ranks = static_cast<int>(speeds.size());
    for (std::size_t tile = 0; tile + 1 < tiles.count(); ++tile)
      EXPECT_LE(parts[tile], parts[tile + 1]);
    EXPECT_EQ(cut_of(tiles, "pipeline", parts, ranks).bytes(), 2 * 4 * 64 * 3);
  }
}

TEST(Tables, AreWithin80Columns) {
  for (const int ranks : {6, 8}) {
    models::ModelOptions options;
    options.auxiliary = true;
    for (const char* net : {"googlenet", "resnet34", "vgg16e"}) {
      const Model model = models::build(net, options);
      TileSpec spec = spec_of(4096, 16);
      spec.seconds.assign(model.nodes().size(), 1.0);
      const Tiles tiles(model, spec);
      const Speeds speeds(static_cast<std::size_t>(ranks), 1.0);
      std::vector<Cut> cuts;
      cuts.push_back(cut_of(tiles, "data", place_by_samples(tiles, speeds), ranks));
      cuts.push_back(cut_of(tiles, "hypergraph", place_by_channels(tiles, speeds), ranks));
      cuts.push_back(cut_of(tiles, "pipeline", place_by_layers(tiles, speeds), ranks));
      std::string text = strategy_table(cuts, speeds, 1e8);
      for (const Cut& cut : cuts) text += layer_table(tiles, cut);
      std::istringstream lines(text);
      for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
    }
  }
}

TEST(PartitionCommand, SaysWhatItCannotKeep) {
  // One image cannot be shared out by samples, nor a network's layers evenly.
  const Result one =
      run({"partition", "--net", "lenet", "--workers", "7", "--batch", "1", "--imbalance", "0"});
  EXPECT_EQ(one.exit, 0) << one.err;
  EXPECT_NE(one.out.find("No cut is within 0.0%"), std::string::npos) << one.out;
  TemporaryFolder folder;
  const std::string file = folder.path() + "/idle.net";
  write_text(file, "network Idle\ninput 1x1x3\nclasses 3\nbn batch norm\nsoftmax softmax\nend\n");
  const Result idle = run({"partition", "--net", file, "--workers", "2"});
  EXPECT_EQ(idle.exit, 2) << idle.out;
  EXPECT_NE(idle.err.find("nothing to share out"), std::string::npos) << idle.err;
}

TEST(PartitionCommand, PrintsAndRefuses) {
  const Result text = run({"partition", "--net", "lenet", "--workers", "2", "--batch", "64"});
  EXPECT_EQ(text.exit, 0) << text.err;
  for (const char* word : {"data", "owt", "filter", "pipeline", "hybrid", "hypergraph", "conv1"})
    EXPECT_NE(text.out.find(word), std::string::npos) << word;
  EXPECT_EQ(text.out, run({"partition", "--net", "lenet", "--workers", "2", "--batch", "64"}).out);
  // Data parallelism sends 2 x 1 / 2 of the weights' bytes each way.
  const Result timed = run({"partition", "--net", "lenet", "--workers", "2", "--t-grad", "1ms",
                            "--rate", "100Mbit/s", "--output", "json"});
  const auto json = nlohmann::json::parse(timed.out);
  EXPECT_NEAR(json["strategies"][0]["least_s"].get<double>(),
              4.0 * static_cast<double>(models::build("lenet", {}).trained_parameters()) / 12.5e6,
              1e-6);
  const Result csv = run(
      {"partition", "--net", "lenet", "--workers", "2", "--strategy", "data", "--output", "csv"});
  EXPECT_EQ(csv.out.substr(0, 16), "layer,rank,part,");
  EXPECT_NE(csv.out.find("\nfc1,1,0.5000,"), std::string::npos) << csv.out;
  TemporaryFolder folder;
  const std::string picture = folder.path() + "/cut.svg";
  run({"partition", "--net", "lenet", "--workers", "2", "--strategy", "owt", "--svg", picture});
  const std::string svg = read_text(picture);
  EXPECT_NE(svg.find("rank 1"), std::string::npos);
  // The loss is cut by samples, all else by samples or channels: each layer but the input has a
  // band of each rank. The convolution's output is what crosses most.
  const std::size_t layers = models::build("lenet", {}).nodes().size() - 1;
  EXPECT_EQ(count(svg, "fill-opacity:0.35"), 2 * layers);
  EXPECT_EQ(count(svg, "stroke-width:11.2"), 1U);
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"--workers", "1"},
        {"--workers", "65"},
        {"--workers", "4", "--batch", "0"},
        {"--workers", "4", "--strategy", "none"},
        {"--workers", "4", "--slow", "4:2"},
        {"--workers", "4", "--rate", "0"},
        {"--workers", "4", "--t-grad", "1e300"},
        {"--t-grad", "1s", "--workers", "4", "--profile", "x"},
        {"--workers", "4", "--rate", "1Gbit/s"},
        {"--workers", "4", "--t-grad", "nan"},
        {"--workers", "4", "--slow", "1:uniform:1:2"},
        {"--workers", "4", "--imbalance", "-1"}}) {
    const Result refused = run(plus({"partition", "--net", "lenet"}, words));
    EXPECT_EQ(refused.exit, 2) << words.back();
    EXPECT_NE(refused.err.find(words[words.size() - 2].substr(2)), std::string::npos)
        << refused.err;
  }
  EXPECT_EQ(run({"partition", "--net", "lenet", "--workers", "2", "--profile", "/nowhere"}).exit,
            1);
}

}  // namespace
}  // namespace duplex::tools::testing
