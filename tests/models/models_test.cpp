// Compares the networks with the thesis's tables (2.1-2.5): parameters, sizes of maps,
// multiply-adds; and tests what the registry refuses.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "core/error.h"
#include "models/registry.h"
#include "tests/layers/plan_simulation.h"

namespace duplex {
namespace {

using models::build;
using models::ModelOptions;

ModelOptions with_input(std::int64_t input) {
  ModelOptions options;
  options.input = input;
  return options;
}
ModelOptions with_auxiliary() {
  ModelOptions options;
  options.auxiliary = true;
  return options;
}
ModelOptions with_zero_padding() {
  ModelOptions options;
  options.zero_padded_shortcuts = true;
  return options;
}

/// Returns every network in every form.
std::vector<std::pair<std::string, ModelOptions>> all_forms() {
  return {{"vgg16e", {}},     {"vgg16e", with_input(128)},
          {"googlenet", {}},  {"googlenet", with_auxiliary()},
          {"squeezenet", {}}, {"resnet34", {}},
          {"alexnet", {}},    {"resnet34", with_zero_padding()},
          {"lenet", {}}};
}

const Model::Entry& layer(const Model& model, const std::string& name) {
  for (const Model::Entry& entry : model.nodes()) {
    if (entry.name == name) return entry;
  }
  throw Error(model.title() + " has no layer " + name);
}

/// Expects a layer's output to be side x side x channels.
void expect_map(const Model& model, const std::string& name, std::int64_t side,
                std::int64_t channels) {
  const Shape& shape = layer(model, name).shape;
  EXPECT_EQ(shape, (Shape{1, channels, side, side})) << model.title() << " " << name;
}

Shape weight(const Model& model, const std::string& name) {
  return model.parameters(layer(model, name)).at(0).shape;
}

TEST(Models, HaveTheirParametersExactly) {
  EXPECT_EQ(build("vgg16e", {}).trained_parameters(), 143667240);
  EXPECT_EQ(build("vgg16e", with_input(128)).trained_parameters(), 74461224);
  EXPECT_EQ(build("googlenet", {}).trained_parameters(), 6998552);
  EXPECT_EQ(build("googlenet", with_auxiliary()).trained_parameters(), 13378280);
  EXPECT_EQ(build("squeezenet", {}).trained_parameters(), 1248424);
  EXPECT_EQ(build("resnet34", {}).trained_parameters(), 21797672);
  EXPECT_EQ(build("resnet34", with_zero_padding()).trained_parameters(), 21623848);
  EXPECT_EQ(build("alexnet", {}).trained_parameters(), 60965224);
  EXPECT_EQ(build("lenet", {}).trained_parameters(), 431080);
}

TEST(Models, HaveAsManyOutputsAsClasses) {
  for (const auto& [name, options] : all_forms()) {
    ModelOptions chosen = options;
    EXPECT_EQ(build(name, chosen).classes(), name == "lenet" ? 10 : 1000) << name;
    chosen.classes = 257;
    EXPECT_EQ(build(name, chosen).classes(), 257) << name;
  }
}

TEST(Models, TakeOtherChannels) {
  ModelOptions grey;
  grey.channels = 1;
  EXPECT_EQ(weight(build("vgg16e", grey), "conv1_1"), (Shape{64, 1, 3, 3}));
  ModelOptions colour;
  colour.channels = 3;
  EXPECT_EQ(weight(build("lenet", colour), "conv1"), (Shape{20, 3, 5, 5}));
}

TEST(Models, Vgg16eIsTable21) {
  const std::int64_t filters[] = {64, 128, 256, 512, 512};
  const int depth[] = {2, 2, 4, 4, 4};
  for (std::int64_t input : {224, 128}) {
    const Model model = build("vgg16e", with_input(input));
    std::int64_t side = input;
    for (int stage = 0; stage < 5; ++stage) {
      const std::string number = std::to_string(stage + 1);
      for (int i = 1; i <= depth[stage]; ++i) {
        expect_map(model, "conv" + number + "_" + std::to_string(i), side, filters[stage]);
      }
      side /= 2;
      expect_map(model, "pool" + number, side, filters[stage]);
    }
    EXPECT_EQ(weight(model, "fc6"), (Shape{4096, input == 224 ? 25088 : 8192}));
    EXPECT_EQ(weight(model, "fc7"), (Shape{4096, 4096}));
    EXPECT_EQ(weight(model, "fc8"), (Shape{1000, 4096}));
  }
}

TEST(Models, GoogLeNetIsTables22And23) {
  const Model model = build("googlenet", with_auxiliary());
  expect_map(model, "conv1", 112, 64);
  expect_map(model, "pool1", 56, 64);
  expect_map(model, "norm1", 56, 64);
  expect_map(model, "conv2_reduce", 56, 64);
  expect_map(model, "conv2", 56, 192);
  expect_map(model, "pool2", 28, 192);
  struct Module {
    const char* name;
    std::int64_t side, out, one, reduce_three, three, reduce_five, five, project;
  };
  for (const Module& m : {Module{"3a", 28, 256, 64, 96, 128, 16, 32, 32},
                          Module{"3b", 28, 480, 128, 128, 192, 32, 96, 64},
                          Module{"4a", 14, 512, 192, 96, 208, 16, 48, 64},
                          Module{"4b", 14, 512, 160, 112, 224, 24, 64, 64},
                          Module{"4c", 14, 512, 128, 128, 256, 24, 64, 64},
                          Module{"4d", 14, 528, 112, 144, 288, 32, 64, 64},
                          Module{"4e", 14, 832, 256, 160, 320, 32, 128, 128},
                          Module{"5a", 7, 832, 256, 160, 320, 32, 128, 128},
                          Module{"5b", 7, 1024, 384, 192, 384, 48, 128, 128}}) {
    const std::string name = std::string("inception_") + m.name + "/";
    expect_map(model, name + "concat", m.side, m.out);
    expect_map(model, name + "1x1", m.side, m.one);
    expect_map(model, name + "3x3_reduce", m.side, m.reduce_three);
    expect_map(model, name + "3x3", m.side, m.three);
    expect_map(model, name + "5x5_reduce", m.side, m.reduce_five);
    expect_map(model, name + "5x5", m.side, m.five);
    expect_map(model, name + "pool_proj", m.side, m.project);
    EXPECT_EQ(weight(model, name + "3x3"), (Shape{m.three, m.reduce_three, 3, 3}));
    EXPECT_EQ(weight(model, name + "5x5"), (Shape{m.five, m.reduce_five, 5, 5}));
  }
  expect_map(model, "pool5", 1, 1024);
  for (const char* helper : {"auxiliary1", "auxiliary2"}) {
    const std::string name = std::string(helper) + "/";
    expect_map(model, name + "pool", 4, helper == std::string("auxiliary1") ? 512 : 528);
    expect_map(model, name + "conv", 4, 128);
    EXPECT_EQ(weight(model, name + "fc"), (Shape{1024, 2048}));
    EXPECT_EQ(weight(model, name + "classifier"), (Shape{1000, 1024}));
    EXPECT_EQ(layer(model, name + "dropout").layer->geometry({}), "70%");
    EXPECT_FLOAT_EQ(layer(model, name + "softmax").layer->loss_weight(), 0.3F);
  }
  // The auxiliary classifiers read 4a and 4d; they, and nothing else, rest outside training.
  EXPECT_EQ(layer(model, "auxiliary1/pool").inputs,
            (std::vector<int>{layer(model, "inception_4b/1x1").inputs}));
  EXPECT_EQ(layer(model, "auxiliary2/pool").inputs,
            (std::vector<int>{layer(model, "inception_4e/1x1").inputs}));
  for (const Model::Entry& entry : model.nodes()) {
    EXPECT_EQ(entry.training_only, entry.block.rfind("auxiliary", 0) == 0) << entry.name;
  }
}

TEST(Models, SqueezeNetIsTable24) {
  const Model model = build("squeezenet", {});
  expect_map(model, "conv1", 112, 96);
  expect_map(model, "pool1", 56, 96);
  const std::int64_t squeeze[] = {16, 16, 32, 32, 48, 48, 64, 64};
  const std::int64_t expand[] = {64, 64, 128, 128, 192, 192, 256, 256};
  for (int i = 0; i < 8; ++i) {
    const std::string name = "fire" + std::to_string(i + 1) + "/";
    const std::int64_t side = i < 3 ? 56 : i < 7 ? 28 : 14;
    expect_map(model, name + "squeeze", side, squeeze[i]);
    expect_map(model, name + "expand1x1", side, expand[i]);
    expect_map(model, name + "expand3x3", side, expand[i]);
    expect_map(model, name + "concat", side, 2 * expand[i]);
    EXPECT_EQ(weight(model, name + "expand3x3"), (Shape{expand[i], squeeze[i], 3, 3}));
  }
  expect_map(model, "conv2", 14, 1000);
  expect_map(model, "pool4", 1, 1000);
}

TEST(Models, Resnet34IsTable25) {
  for (const ModelOptions& options : {ModelOptions{}, with_zero_padding()}) {
    const Model model = build("resnet34", options);
    expect_map(model, "conv1", 112, 64);
    expect_map(model, "pool1", 56, 64);
    const std::int64_t filters[] = {64, 128, 256, 512};
    const int blocks[] = {3, 4, 6, 3};
    std::int64_t side = 56;
    for (int stage = 0; stage < 4; ++stage) {
      for (int i = 1; i <= blocks[stage]; ++i) {
        const std::string name =
            "residual" + std::to_string(stage + 1) + "_" + std::to_string(i) + "/";
        for (const char* part : {"conv1", "bn1", "conv2", "bn2", "add"}) {
          expect_map(model, name + part, side, filters[stage]);
        }
      }
      side /= 2;
    }
    expect_map(model, "pool2", 1, 512);
    int shortcuts = 0, pads = 0;
    for (const Model::Entry& entry : model.nodes()) {
      shortcuts += entry.name.find("/shortcut_conv") != std::string::npos;
      pads += entry.name.find("/shortcut_pad") != std::string::npos;
    }
    EXPECT_EQ(shortcuts, options.zero_padded_shortcuts ? 0 : 3);
    EXPECT_EQ(pads, options.zero_padded_shortcuts ? 3 : 0);
  }
}

TEST(Models, AlexNetSplitsThreeConvolutionsIntoTwoGroups) {
  const Model model = build("alexnet", {});
  expect_map(model, "conv1", 55, 96);
  expect_map(model, "pool1", 27, 96);
  expect_map(model, "conv2", 27, 256);
  expect_map(model, "pool2", 13, 256);
  expect_map(model, "conv5", 13, 256);
  expect_map(model, "pool5", 6, 256);
  EXPECT_EQ(weight(model, "conv2"), (Shape{256, 48, 5, 5}));
  EXPECT_EQ(weight(model, "conv3"), (Shape{384, 256, 3, 3}));
  EXPECT_EQ(weight(model, "conv4"), (Shape{384, 192, 3, 3}));
  EXPECT_EQ(weight(model, "conv5"), (Shape{256, 192, 3, 3}));
}

TEST(Models, LeNetEndsInFourByFourMaps) {
  const Model model = build("lenet", {});
  expect_map(model, "pool1", 12, 20);
  expect_map(model, "pool2", 4, 50);
  EXPECT_EQ(weight(model, "fc1"), (Shape{500, 800}));
}

/// Every weight of a convolution is used once for each place of its output map, and every weight of
/// a linear layer once.
TEST(Models, MultiplyAsOftenAsTheirWeightsAndMapsSay) {
  for (const auto& [name, options] : all_forms()) {
    const Model model = build(name, options);
    std::int64_t total = 0;
    for (const Model::Entry& entry : model.nodes()) {
      if (!entry.layer) continue;
      std::int64_t expected = 0;
      const std::string type = entry.layer->type();
      if (type == "conv" || type == "linear") {
        const Shape weights = model.parameters(entry).at(0).shape;
        expected = weights.elements() * entry.shape.h() * entry.shape.w();
      }
      EXPECT_EQ(entry.layer->macs(model.input_shapes(entry)), expected)
          << model.title() << " " << entry.name;
      if (!entry.training_only) total += expected;
    }
    EXPECT_EQ(model.macs(), total) << model.title();
  }
}

/// He et al. 2015 (Deep Residual Learning), section 3.3, say 3.6 billion for Resnet34 and 19.6
/// billion for VGG19, Szegedy et al. 2014 about 1.5 billion for GoogLeNet. AlexNet's are counted
/// from the sizes in Krizhevsky's paper.
TEST(Models, MultiplyAsOftenAsTheirPapersSay) {
  const auto billions = [](const std::string& name) {
    return static_cast<double>(build(name, {}).macs()) * 1e-9;
  };
  EXPECT_NEAR(billions("resnet34"), 3.6, 0.1);
  EXPECT_NEAR(billions("vgg16e"), 19.6, 0.1);
  EXPECT_NEAR(billions("googlenet"), 1.5, 0.1);
  const std::int64_t alexnet = 55 * 55 * 96 * 363 + 27 * 27 * 256 * 1200 + 169 * 384 * 2304 +
                               169 * 384 * 1728 + 169 * 256 * 1728 + 9216 * 4096 + 4096 * 4096 +
                               4096 * 1000;
  EXPECT_EQ(build("alexnet", {}).macs(), alexnet);
}

TEST(Models, PlansOfTheirMemoryAreSoundAndSmall) {
  for (const auto& [name, options] : all_forms()) {
    const Model model = build(name, options);
    std::vector<TensorDesc> y;
    for (const Model::Entry& entry : model.nodes()) {
      y.push_back(plain_desc(entry.shape));
      y.back().bytes *= 8;  // A batch of 8.
    }
    for (bool training : {true, false}) {
      const BackwardPlan plan = plan_backward(model, y, training);
      test::PlanSimulation simulation(model, plan);
      EXPECT_EQ(simulation.run(training), "") << model.title();
      EXPECT_LE(static_cast<double>(simulation.arena_bytes()),
                1.1 * static_cast<double>(simulation.peak_bytes()))
          << model.title() << (training ? ", training" : ", inference");
    }
  }
}

TEST(Models, AreListedOncePerFile) {
  std::set<std::string> names;
  for (const auto& [name, builder] : models::all()) {
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_GT(builder({}).trained_parameters(), 0) << name;
  }
  for (const auto& [name, options] : all_forms()) EXPECT_EQ(names.count(name), 1U) << name;
  EXPECT_EQ(names.count("registry"), 0U);
}

std::string message(const std::string& name, const ModelOptions& options, Exit code) {
  try {
    build(name, options);
  } catch (const Error& error) {
    EXPECT_EQ(error.code, code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << name << " was built";
  return "";
}

void expect_in(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    EXPECT_NE(text.find(part), std::string::npos) << "no '" << part << "' in: " << text;
  }
  EXPECT_EQ(text.find('\n'), std::string::npos) << "more than a line: " << text;
}

TEST(Models, AnUnknownNetworkIsAnsweredWithTheKnown) {
  const std::string text = message("resnet18", {}, Exit::usage);
  expect_in(text, {"'resnet18'"});
  for (const auto& [name, builder] : models::all()) expect_in(text, {name});
}

TEST(Models, InputsTooSmallAreRefusedByTheLayerThatTheyAreTooSmallFor) {
  const auto refusal = [](const std::string& name, const ModelOptions& options) {
    return message(name, options, Exit::failed);
  };
  expect_in(refusal("vgg16e", with_input(31)), {"VGG16E", "pool5", "larger input"});
  expect_in(refusal("alexnet", with_input(60)), {"AlexNet", "pool5", "larger input"});
  expect_in(refusal("lenet", with_input(12)), {"LeNet", "conv2", "larger input"});
  ModelOptions small = with_auxiliary();
  small.input = 64;
  expect_in(refusal("googlenet", small), {"GoogLeNet", "auxiliary1/pool", "larger input"});
  EXPECT_EQ(build("vgg16e", with_input(32)).classes(), 1000);
  small.input = 65;
  EXPECT_EQ(build("googlenet", small).classes(), 1000);
  expect_in(message("vgg16e", with_input(-3), Exit::usage), {"from 1 to 4096", "not -3"});
}

}  // namespace
}  // namespace duplex
