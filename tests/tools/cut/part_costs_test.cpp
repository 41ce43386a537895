// Tests what is measured of a network's parts, and what follows for parts that were not measured.
#include "tools/prediction/part_costs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/error.h"
#include "tests/temporary_folder.h"
#include "tests/tools/program.h"
#include "tools/parts/part_measurement.h"
#include "tools/parts/part_times.h"
#include "tools/plan/machines_file.h"
#include "tools/scenario/scenario.h"
#include "tools/simulation/cut_run.h"

namespace duplex::tools::testing {
namespace {

TEST(MeasuredLine, GoesThroughItsPoints) {
  MeasuredLine line;
  EXPECT_EQ(line.at(3.0), 0.0);
  line.add(8.0, 4.0);
  EXPECT_DOUBLE_EQ(line.at(2.0), 1.0);  // In proportion.
  line.add(2.0, 3.0);
  line.add(32.0, 10.0);
  EXPECT_DOUBLE_EQ(line.at(2.0), 3.0);
  EXPECT_DOUBLE_EQ(line.at(5.0), 3.5);
  EXPECT_DOUBLE_EQ(line.at(20.0), 7.0);
  EXPECT_DOUBLE_EQ(line.at(32.0), 10.0);
  EXPECT_DOUBLE_EQ(line.at(64.0), 18.0);  // As between 8 and 32: 0.25 for each.
  EXPECT_NEAR(line.at(1.0), 3.0 - 1.0 / 6.0, 1e-12);
  line.add(2.0, 1.0);  // It takes the place of the other.
  EXPECT_DOUBLE_EQ(line.at(5.0), 2.5);
}

TEST(MeasuredLine, NeitherFallsNorGoesBelowProportion) {
  MeasuredLine falling;
  falling.add(1.0, 4.0);
  falling.add(2.0, 3.0);
  EXPECT_DOUBLE_EQ(falling.at(8.0), 3.0);
  MeasuredLine steep;
  steep.add(4.0, 1.0);
  steep.add(8.0, 9.0);
  EXPECT_DOUBLE_EQ(steep.at(2.0), 0.5);  // The line would be at -3.
}

/// The convolution has 4 channels, the linear layer 8.
Model small() {
  Model model("Small", {1, 1, 4, 4});
  const Model::Node x = model.conv("conv", model.input(), 4, same(3));
  model.softmax("softmax", model.linear("fc", x, 8, false));
  return model;
}

LayerTimes whole_times() {
  LayerTimes times;
  times.forward = {0.0, 0.8, 1.6, 0.1};
  times.backward = {0.0, 2.4, 3.2, 0.0};
  times.batch = 16;
  return times;
}

/// The whole network takes half as long for a quarter of the samples, and the convolution's halves
/// three quarters of the whole. The linear layer was not measured in part.
std::vector<PartProfile> measured() {
  PartProfile quarter;
  quarter.samples = 4;
  quarter.layers = {{"conv", 4, 0.4, 1.2}, {"fc", 8, 0.8, 1.6}, {"softmax", 8, 0.05, 0.0}};
  quarter.adding = 1e-9;
  PartProfile halves;
  halves.ranks = 2;
  halves.samples = 16;
  halves.layers = {{"conv", 2, 0.6, 1.8}};
  halves.edges = {{"send", 2, 4000, 0.002, 0.004}, {"receive", 1, 1000, 0.003, 0.001}};
  halves.adding = 3e-9;
  return {quarter, halves};
}

TEST(PartCosts, AreAsMeasuredAndBetween) {
  const PartCosts costs(small(), whole_times(), 16, measured(), "machines.json");
  EXPECT_DOUBLE_EQ(costs.layer(1, 16, 4).forward, 0.8);
  EXPECT_DOUBLE_EQ(costs.layer(1, 4, 4).backward, 1.2);
  EXPECT_DOUBLE_EQ(costs.layer(1, 10, 4).forward, 0.6);
  EXPECT_DOUBLE_EQ(costs.layer(1, 16, 2).forward, 0.6);
  EXPECT_DOUBLE_EQ(costs.layer(1, 16, 3).backward, 2.1);
  EXPECT_DOUBLE_EQ(costs.layer(1, 16, 1).forward, 0.5);  // On the line through 2 and 4 channels.
  EXPECT_DOUBLE_EQ(costs.layer(2, 16, 4).forward, 0.8);  // In proportion.
  EXPECT_DOUBLE_EQ(costs.layer(2, 4, 4).backward, 0.8);
  EXPECT_DOUBLE_EQ(costs.whole(16), 0.8 + 1.6 + 0.1 + 2.4 + 3.2);
  EXPECT_DOUBLE_EQ(costs.whole(4), 0.4 + 0.8 + 0.05 + 1.2 + 1.6);
  EXPECT_DOUBLE_EQ(costs.edge("send", 2000).backward, 0.002);
  EXPECT_DOUBLE_EQ(costs.edge("receive", 500).forward, 0.0015);
  EXPECT_EQ(costs.edge("gather", 500).forward, 0.0);
  EXPECT_DOUBLE_EQ(costs.adding(1'000'000), 0.002);
}

TEST(PartCosts, RefuseAPartOfAnotherNetwork) {
  const auto refuse = [](const PartProfile& part, const std::string& because) {
    try {
      PartCosts(small(), whole_times(), 16, {part}, "machines.json");
      FAIL() << because;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("machines.json: the part of "), std::string::npos);
      EXPECT_NE(std::string(error.what()).find(because), std::string::npos) << error.what();
    }
  };
  PartProfile part = measured().front();
  part.layers.front().name = "conv2";
  refuse(part, "a layer that is not the network's: conv2");
  part = measured().front();
  part.layers.front().channels = 5;
  refuse(part, "so many channels of conv");
  part = measured().front();
  part.samples = 0;
  refuse(part, "has none");
  part = measured().back();
  part.edges.front().layers = 0;
  refuse(part, "no bytes of send");
}

TEST(PartLayer, TakesWeightsInOnceAndAddsGradientsUp) {
  simulation::PartLayer layer;
  layer.forward = 1.0;
  layer.backward = 2.0;
  layer.upload = 0.1;
  layer.download = 0.02;
  layer.keeping = 0.003;
  layer.adding = 0.0004;
  EXPECT_DOUBLE_EQ(simulation::step_seconds(layer, 1), 3.0 + 0.1 + 0.02);
  EXPECT_DOUBLE_EQ(simulation::forward_seconds(layer, 0), 1.1);
  EXPECT_DOUBLE_EQ(simulation::forward_seconds(layer, 1), 1.0);
  EXPECT_DOUBLE_EQ(simulation::backward_seconds(layer, 0, 3), 2.003);
  EXPECT_DOUBLE_EQ(simulation::backward_seconds(layer, 1, 3), 2.0004);
  // The mean goes back to where the layer computes, and away with all others.
  EXPECT_DOUBLE_EQ(simulation::backward_seconds(layer, 2, 3), 2.0004 + 0.02 + 0.1);
}

/// A worker's share of a batch takes as long as that many samples were measured to take.
TEST(PartCosts, TellWhatASplitBatchTakes) {
  Scenario scenario = Scenario::with_rate(small(), whole_times(), 1e8);
  SimulationRequest request;
  request.parallel.sync = net::Sync::split;
  request.workers = 4;
  EXPECT_DOUBLE_EQ(spec_of(request, scenario, 4).part.front(), 0.25);
  scenario.parts =
      std::make_shared<PartCosts>(scenario.model, scenario.times, 16, measured(), "machines.json");
  EXPECT_DOUBLE_EQ(spec_of(request, scenario, 4).part.front(), 4.05 / 8.1);
  EXPECT_DOUBLE_EQ(spec_of(request, scenario, 1).part.front(), 1.0);
}

/// The last maps of Resnet34 are of one pixel at this input.
TEST(CutScenario, RefusesToNormaliseASingleValue) {
  const auto with = [](const std::string& micro_batches) {
    return run({"simulate", "--net", "resnet34", "--input", "32", "--batch", "4", "--t-grad", "1",
                "--rate", "1Gbit/s", "--workers", "2", "--batches", "4", "--strategy", "pipeline",
                "--micro-batches", micro_batches});
  };
  const Result refused = with("8");
  EXPECT_EQ(refused.exit, 2) << refused.out;
  EXPECT_NE(refused.err.find("a single value of each channel of residual4_1/bn1"),
            std::string::npos)
      << refused.err;
  EXPECT_EQ(with("4").exit, 0);
}

const PartProfile& part_of(const std::vector<PartProfile>& parts, std::int64_t ranks,
                           std::int64_t samples) {
  for (const PartProfile& part : parts)
    if (part.ranks == ranks && part.samples == samples) return part;
  throw std::runtime_error("there is no such part");
}

PartMeasurement small_measurement(int ranks) {
  PartMeasurement spec;
  spec.computing.device = "reference";
  spec.computing.threads = 1;
  spec.batch = 4;
  spec.ranks = ranks;
  spec.seconds = 0.01;
  return spec;
}

TEST(PartMeasurement, HasPartsOfAllLayers) {
  PartMeasurement spec = small_measurement(3);
  std::string said;
  spec.log = [&](const std::string& line) { said += line + "\n"; };
  const Model model = small();
  const std::vector<PartProfile> parts = measure_parts(model, spec);
  EXPECT_EQ(said, "");
  ASSERT_EQ(parts.size(), 3U);  // Of one rank and two, the former without all samples.
  const PartProfile& one = part_of(parts, 1, 1);
  ASSERT_EQ(one.layers.size(), model.nodes().size() - 1);
  EXPECT_TRUE(one.edges.empty());
  EXPECT_GT(one.adding, 0.0);
  for (const PartProfileLayer& layer : one.layers) EXPECT_GT(layer.forward, 0.0) << layer.name;
  // The loss is cut by samples.
  const PartProfile& two = part_of(parts, 2, 4);
  ASSERT_EQ(two.layers.size(), 2U);
  EXPECT_EQ(two.layers[0].name, "conv");
  EXPECT_EQ(two.layers[0].channels, 2);
  EXPECT_EQ(two.layers[1].name, "fc");
  EXPECT_EQ(two.layers[1].channels, 4);
  const auto edges = [&](const std::string& type) {
    return *std::find_if(two.edges.begin(), two.edges.end(),
                         [&](const PartProfileEdges& each) { return each.type == type; });
  };
  // The other rank needs 2 channels of 16 pixels of 4 samples as a whole, and 4 outputs of 2 of the
  // 4 samples. As much of its own comes from there.
  const std::int64_t map = 2 * 16 * 4 * 4, outputs = 4 * 2 * 4;
  EXPECT_EQ(edges("send").layers, 2);
  EXPECT_EQ(edges("send").bytes, map + outputs + 2 * outputs);
  EXPECT_EQ(edges("receive").bytes, map + outputs);
  EXPECT_GT(edges("send").forward, 0.0);
  EXPECT_GT(edges("receive").backward, 0.0);
}

/// Parts count as on a machine that takes as long for the whole network as it is said to.
TEST(PartMeasurement, GoesByTheWholeNetwork) {
  PartMeasurement spec = small_measurement(1);
  spec.whole = 1e-10;  // It takes thousands of times as long.
  const std::vector<PartProfile> parts = measure_parts(small(), spec);
  const PartProfile& one = part_of(parts, 1, 1);
  double sum = 0.0;
  for (const PartProfileLayer& layer : one.layers) sum += layer.forward + layer.backward;
  EXPECT_GT(sum, 0.0);
  EXPECT_LT(sum, 10 * spec.whole);
}

TEST(PartTimes, TakeEdgesAndChannelsAsMeasured) {
  const Model model = small();
  NetworkPart part{Model("Part", {1, 1, 4, 4}), 0, 1, true};
  Model::Entry whole = model.nodes()[1];
  PartOf of;
  of.layer = "conv";
  of.samples = 16;
  of.all_channels = 4;
  const std::shared_ptr<const Layer> half = whole.layer->part({0, 2});
  ASSERT_TRUE(half);
  part.model.layer("conv[0:2]", half, {0}, of);
  const PartCosts costs(model, whole_times(), 16, measured(), "machines.json");
  const LayerTimes times = part_times(part, model, 16, costs);
  ASSERT_EQ(times.forward.size(), 2U);
  EXPECT_DOUBLE_EQ(times.forward[1], 0.6);
  EXPECT_DOUBLE_EQ(times.backward[1], 1.8);
  const LayerTimes proportional = part_times(part, model, 16, whole_times());
  EXPECT_DOUBLE_EQ(proportional.forward[1], 0.4);
}

/// simulate plays what plan has measured, and comes to the seconds that plan foresees.
TEST(MeasuredMachines, AreSimulatedAsPlanned) {
  TemporaryFolder folder;
  write_text(folder / "nodes", nodes_here(2));
  const Result measuring =
      run({"plan", "--net", "lenet", "--batch", "6", "--threads", "1", "--seconds", "0.2",
           "--nodefile", folder / "nodes", "--logdir", folder / "measured"});
  ASSERT_EQ(measuring.exit, 0) << measuring.err;
  const std::string path = folder / "measured/machines.json";
  const MachinesFile file = read_machines(path);
  for (const MeasuredMachine& machine : file.machines) {
    EXPECT_EQ(part_of(machine.parts, 1, 1).layers.size(), machine.profile.layers.size());
    EXPECT_FALSE(part_of(machine.parts, 2, 6).edges.empty());
    EXPECT_EQ(machine.parts.size(), 3U);
  }
  const Result planned = run({"plan", "--measured", path, "--output", "json"});
  ASSERT_EQ(planned.exit, 0) << planned.err;
  const auto json = nlohmann::json::parse(planned.out);
  int cuts = 0;
  for (const auto& way : json["ways"]) {
    const std::string name = way["way"];
    if (way["cut_flags"].empty() || name.find("lossless") != std::string::npos ||
        name.find("bf16") != std::string::npos)
      continue;
    std::vector<std::string> words{"simulate",  "--measured", path,       "--workers",  "2",
                                   "--batches", "40",         "--logdir", folder / name};
    for (const std::string flag : way["cut_flags"]) words.push_back(flag);
    const Result simulated = run(words);
    ASSERT_EQ(simulated.exit, 0) << simulated.err;
    const auto summary = nlohmann::json::parse(read_text(folder / (name + "/summary.json")));
    const double step = way["image_s"].get<double>() * 12;
    const auto config = nlohmann::json::parse(read_text(folder / (name + "/config.json")));
    EXPECT_EQ(config["measured"], path);
    EXPECT_GT(config["latency_s"].get<double>(), 0.0);
    EXPECT_NE(config["latency_s"].get<double>(), 50e-6);  // It is half of a round trip.
    EXPECT_NEAR(summary["step_s"]["median"].get<double>(), step, 0.02 * step) << name;
    ++cuts;
  }
  EXPECT_GE(cuts, 3);
  const auto refuses = [&](const std::vector<std::string>& more, const std::string& because) {
    std::vector<std::string> words{"simulate", "--measured", path};
    words.insert(words.end(), more.begin(), more.end());
    const Result result = run(words);
    EXPECT_EQ(result.exit, 2) << result.out;
    EXPECT_NE(result.err.find(because), std::string::npos) << result.err;
  };
  refuses({"--workers", "3"}, "3 ranks, and " + path + " is of 2 machines");
  refuses({"--workers", "2", "--rate", "1Gbit/s"}, "--measured and figures of computing");
  refuses({"--workers", "2", "--net", "alexnet"}, "is of lenet");
  refuses({"--workers", "2", "--cores", "4"}, "leave the flag out");
  refuses({"--workers", "2", "--threads", "2"}, "leave --threads out");
  refuses({"--workers", "2", "--together", "2"}, "leave --together out");
  refuses({"--workers", "2", "--batch", "7"}, "is of lenet");
}

}  // namespace
}  // namespace duplex::tools::testing
