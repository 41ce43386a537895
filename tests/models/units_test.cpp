// Tests units: which layers are taken together, what they weigh, and what they read of others.
#include "layers/placement/units.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "models/registry.h"
#include "tests/layers/small_networks.h"

namespace duplex {
namespace {

std::size_t find(const Units& units, const std::string& name) {
  for (std::size_t unit = 0; unit < units.count(); ++unit)
    if (units[unit].name == name) return unit;
  ADD_FAILURE() << "there is no unit " << name;
  return 0;
}

std::vector<std::string> names(const Model& model, const Unit& unit) {
  std::vector<std::string> names;
  for (const Model::Node node : unit.layers) names.push_back(model.entry(node).name);
  return names;
}

using Read = std::map<std::string, std::vector<std::pair<std::int64_t, std::int64_t>>>;

Read reads(const Units& units, const std::string& name, const Channels& channels) {
  Read read;
  for (const MapPart& each : units.reads(find(units, name), channels))
    read[units[static_cast<std::size_t>(each.unit)].name].emplace_back(each.channels.first,
                                                                       each.channels.end);
  return read;
}

TEST(Units, HaveEveryLayerOnce) {
  for (const auto& [name, builder] : models::all()) {
    for (const bool variant : {false, true}) {
      models::ModelOptions options;
      options.auxiliary = options.zero_padded_shortcuts = variant;
      const Model model = builder(options);
      const Units units(model);
      std::set<Model::Node> seen;
      std::int64_t macs = 0, parameters = 0;
      for (const Unit& unit : units.all()) {
        seen.insert(unit.layers.begin(), unit.layers.end());
        parameters += unit.parameters;
        if (!model.entry(unit.layers.front()).training_only) macs += unit.macs;
        EXPECT_EQ(unit.parameters % unit.channels, 0) << name << " " << unit.name;
      }
      std::size_t layers = 0, rearranging = 0;
      for (const Model::Entry& entry : model.nodes()) {
        if (!entry.layer) continue;
        ++layers;
        const std::string type = entry.layer->type();
        rearranging += type == "concat" || type == "pad channels" ? 1 : 0;
      }
      EXPECT_EQ(seen.size() + rearranging, layers) << name;
      EXPECT_EQ(parameters, model.trained_parameters()) << name;
      EXPECT_EQ(macs, model.macs()) << name;
    }
  }
}

TEST(Units, TakeInWhatWorksByChannel) {
  const Model model = models::build("resnet34", {});
  const Units units(model);
  EXPECT_EQ(names(model, units[find(units, "conv1")]),
            (std::vector<std::string>{"conv1", "bn1", "pool1"}));
  EXPECT_EQ(names(model, units[find(units, "residual1_1/conv2")]),
            (std::vector<std::string>{"residual1_1/conv2", "residual1_1/bn2", "residual1_1/add"}));
  // The addition belongs to the branch that comes later; the other one is read.
  EXPECT_EQ(names(model, units[find(units, "residual2_1/shortcut_conv")]),
            (std::vector<std::string>{"residual2_1/shortcut_conv", "residual2_1/shortcut_bn",
                                      "residual2_1/add"}));
  EXPECT_EQ(reads(units, "residual2_1/shortcut_conv", {3, 7}),
            (Read{{"residual1_3/conv2", {{0, 64}}}, {"residual2_1/conv2", {{3, 7}}}}));
  EXPECT_TRUE(units[find(units, "softmax")].whole);
  EXPECT_FALSE(units[find(units, "classifier")].whole);
}

TEST(Units, ReadThroughConcatenationsAndAddedChannels) {
  const Units googlenet(models::build("googlenet", {}));
  // 3a has 64 + 128 + 32 + 32 channels; 3b reads all, and the pool behind 3b a part of one branch.
  EXPECT_EQ(reads(googlenet, "inception_3b/1x1", {0, 1}),
            (Read{{"inception_3a/1x1", {{0, 64}}},
                  {"inception_3a/3x3", {{0, 128}}},
                  {"inception_3a/5x5", {{0, 32}}},
                  {"inception_3a/pool_proj", {{0, 32}}}}));
  EXPECT_EQ(reads(googlenet, "pool3", {120, 140}),
            (Read{{"inception_3b/1x1", {{120, 128}}}, {"inception_3b/3x3", {{0, 12}}}}));

  models::ModelOptions options;
  options.zero_padded_shortcuts = true;
  const Units resnet(models::build("resnet34", options));
  const std::string block = "residual2_1/";
  EXPECT_EQ(reads(resnet, block + "conv2", {60, 70}),
            (Read{{block + "conv1", {{0, 128}}}, {block + "shortcut_pool", {{60, 64}}}}));
  EXPECT_EQ(reads(resnet, block + "conv2", {64, 128}), (Read{{block + "conv1", {{0, 128}}}}));
}

TEST(Units, ReadNeighboursOfLrnAndHalvesOfGroups) {
  const Units units(models::build("alexnet", {}));
  EXPECT_EQ(reads(units, "norm1", {10, 20}), (Read{{"conv1", {{8, 22}}}}));
  EXPECT_EQ(reads(units, "norm1", {0, 96}), (Read{{"conv1", {{0, 96}}}}));
  EXPECT_EQ(reads(units, "conv2", {10, 20}), (Read{{"norm1", {{0, 48}}}}));
  EXPECT_EQ(reads(units, "conv2", {128, 256}), (Read{{"norm1", {{48, 96}}}}));
  EXPECT_EQ(reads(units, "conv1", {0, 96}), Read());  // The images are on every rank.
}

/// A pipeline takes them in this order.
TEST(Units, StandBehindAllThatTheyRead) {
  for (const auto& [name, builder] : models::all()) {
    models::ModelOptions options;
    options.auxiliary = options.zero_padded_shortcuts = true;
    const Units units(builder(options));
    for (std::size_t unit = 0; unit < units.count(); ++unit)
      for (const MapPart& read : units.reads(unit, {0, units[unit].channels}))
        EXPECT_LT(read.unit, static_cast<int>(unit)) << name << " " << units[unit].name;
  }
}

TEST(Units, WantGradientsWhereParametersLieBefore) {
  const Units units(test::all_kinds());
  for (const Unit& unit : units.all()) EXPECT_TRUE(unit.gradient) << unit.name;
  Model model("Pool first", {1, 2, 8, 8});
  Model::Node x = model.max_pool("pool", model.input(), valid(2));
  x = model.conv("conv", x, 4, same(3));
  model.softmax("softmax", model.linear("fc", x, 3, false));
  const Units pooled(model);
  EXPECT_FALSE(pooled[find(pooled, "pool")].gradient);
  EXPECT_TRUE(pooled[find(pooled, "conv")].gradient);
}

TEST(ChannelBlocks, CoverAllAndKeepGroupsWhole) {
  Unit unit;
  unit.channels = 10;
  const auto blocks = [&](std::int64_t most) {
    std::vector<std::pair<std::int64_t, std::int64_t>> runs;
    for (const Channels& block : channel_blocks(unit, most))
      runs.emplace_back(block.first, block.end);
    return runs;
  };
  using Runs = std::vector<std::pair<std::int64_t, std::int64_t>>;
  EXPECT_EQ(blocks(3), (Runs{{0, 3}, {3, 6}, {6, 10}}));
  EXPECT_EQ(blocks(100).size(), 10U);
  unit.groups = 2;
  EXPECT_EQ(blocks(5), (Runs{{0, 2}, {2, 5}, {5, 7}, {7, 10}}));
  EXPECT_EQ(blocks(1), (Runs{{0, 10}}));
  unit.channels = 24;
  unit.groups = 12;
  EXPECT_EQ(blocks(5), (Runs{{0, 4}, {4, 8}, {8, 14}, {14, 18}, {18, 24}}));
  unit.whole = true;
  EXPECT_EQ(blocks(5), (Runs{{0, 24}}));
}

}  // namespace
}  // namespace duplex
