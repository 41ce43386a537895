// Compares whole networks with PyTorch: the loss, every parameter's gradient, and the losses of ten
// steps of SGD and of Adam, as tests/oracle/generate.py recorded them. A record says everything
// about its run: network, batch, seed, optimisers, tolerances.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.h"
#include "layers/exchange/local_exchange.h"
#include "layers/network.h"
#include "models/registry.h"
#include "tests/layers/devices.h"
#include "tests/layers/train_step.h"

#if defined(__SANITIZE_ADDRESS__)
#define DUPLEX_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define DUPLEX_SANITIZED 1
#endif
#endif

namespace duplex {
namespace {

using nlohmann::json;

#ifdef DUPLEX_SANITIZED
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

/// Says how many steps a device trains of a record, of its ten. FULL=1 in the environment makes
/// them `most` (`make test FULL=1`), which takes minutes for the larger networks; ORACLE_STEPS=3 is
/// for a device that is slow, and makes them 3 at most.
struct Case {
  const char* record;
  const char* device;
  std::size_t steps, most;

  friend std::ostream& operator<<(std::ostream& out, const Case& c) {
    return out << c.record << " on " << c.device;
  }
};

constexpr std::size_t all_steps = 10, sanitized_steps = 2;

json read_record(const std::string& name) {
  const auto folder = std::filesystem::path(__FILE__).parent_path().parent_path() / "oracle";
  const auto path = folder / (name + ".json");
  std::ifstream file(path);
  if (!file) throw Error("no record " + path.string() + "; tests/oracle/generate.py writes it");
  return json::parse(file);
}

models::ModelOptions options_of(const json& record) {
  const json& given = record.at("options");
  models::ModelOptions options;
  options.classes = given.at("classes");
  options.input = given.at("input");
  options.channels = given.at("channels");
  options.auxiliary = given.at("auxiliary");
  options.zero_padded_shortcuts = given.at("zero_padded_shortcuts");
  return options;
}

OptimiserSpec optimiser_of(const json& training) {
  OptimiserSpec spec;
  spec.weight_decay = training.at("weight_decay");
  if (training.at("optimiser") == "adam") {
    spec.kind = OptimiserKind::adam;
  } else {
    spec.momentum = training.at("momentum");
  }
  return spec;
}

/// Returns generate.py's checksum of the bits of float32 values.
std::string checksum(const std::vector<float>& values) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &values[i], sizeof bits);
    sum += bits * (2 * std::uint64_t{i} + 1);
  }
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(sum));
  return text;
}

double relative(double actual, double expected) {
  return std::abs(actual - expected) / std::abs(expected);
}

struct Sums {
  double norm = 0.0, projection = 0.0;
};

/// Returns the norm, and the sum with random factors in [-1, 1).
Sums sums_of(const std::vector<float>& values, std::uint64_t seed) {
  const RandomStream stream(seed, stream_of("projection"));
  std::vector<float> factors(std::min<std::size_t>(values.size(), 1U << 16));
  double squares = 0.0, projection = 0.0;
  for (std::size_t first = 0; first < values.size(); first += factors.size()) {
    const std::size_t count = std::min(factors.size(), values.size() - first);
    stream.fill_uniform(factors.data(), count, first);
    for (std::size_t i = 0; i < count; ++i) {
      const double value = double{values[first + i]};
      squares += value * value;
      projection += value * (2.0 * double{factors[i]} - 1.0);
    }
  }
  return {std::sqrt(squares), projection};
}

class Oracle : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    device = test::backend(GetParam().device, 2);
    if (!device)
      GTEST_SKIP() << GetParam().device << " is not built in (oneDNN: install libdnnl-dev)";
    record = read_record(GetParam().record);
    seed = record.at("seed");
    network = std::make_unique<Network>(models::build(record.at("network"), options_of(record)),
                                        *device, record.at("batch"));
    draw_batch();
    const char *full = std::getenv("FULL"), *least = std::getenv("ORACLE_STEPS");
    const bool in_full = full != nullptr && *full == '1';
    steps = in_full ? GetParam().most : GetParam().steps;
    if (!in_full && least != nullptr) steps = std::min<std::size_t>(steps, std::stoul(least));
    if (sanitized && steps > sanitized_steps) {
      steps = sanitized_steps;
      std::printf("  %zu steps of training only, since the build has sanitizers\n", steps);
    }
  }

  void draw_batch() {
    const Shape& sample = network->model().entry(0).shape;
    const std::int64_t batch = network->batch();
    images.resize(static_cast<std::size_t>(batch * sample.elements()));
    RandomStream(seed, stream_of("images")).fill_uniform(images.data(), images.size());
    for (float& value : images) value = 2.0F * value - 1.0F;
    ASSERT_EQ(checksum(images), record.at("images"));
    const RandomStream random(seed, stream_of("labels"));
    const auto classes = static_cast<std::uint32_t>(network->model().classes());
    for (std::int64_t i = 0; i < batch; ++i) {
      const std::uint32_t label = random.below(static_cast<std::uint64_t>(i), classes);
      labels.push_back(static_cast<std::int32_t>(label));
    }
    ASSERT_EQ(json(labels), record.at("labels"));
  }

  /// Draws the seed's parameters. If the record says so, batch normalisation starts with other
  /// weights and biases, the biases above or below 0 by channel (generate.py says why).
  void initialise() {
    network->initialise(seed);
    const json& start = record.at("batch_norm");
    if (start.is_null()) return;
    std::set<std::string> names;
    for (const Parameter& statistic : network->statistics()) {
      names.insert(statistic.name.substr(0, statistic.name.rfind('.')));
    }
    const RandomStream signs(seed, stream_of("signs"));
    for (Parameter& parameter : network->parameters()) {
      const std::size_t dot = parameter.name.rfind('.');
      if (names.count(parameter.name.substr(0, dot)) == 0) continue;
      const std::string what = parameter.name.substr(dot + 1);
      const float value = start.at(what);
      std::vector<float> values(static_cast<std::size_t>(parameter.spec.shape.elements()), value);
      if (what == "bias") {
        for (std::size_t c = 0; c < values.size(); ++c) {
          if (signs.below(c, 2) == 0) values[c] = -value;
        }
      }
      device->upload(parameter.weights, values.data());
    }
  }

  void check_gradient(const Parameter& parameter, const json& expected, const json& tolerance) {
    std::vector<float> values(static_cast<std::size_t>(parameter.spec.shape.elements()));
    device->download(values.data(), parameter.gradient);
    const Sums sums = sums_of(values, seed);
    const double norm = expected.at("norm");
    EXPECT_LE(relative(sums.norm, norm), tolerance.at("norm"))
        << parameter.name << ": norm " << sums.norm << ", expected " << norm;
    const double projection = expected.at("projection");
    EXPECT_LE(std::abs(sums.projection - projection) / norm, tolerance.at("projection"))
        << parameter.name << ": projection " << sums.projection << ", expected " << projection
        << ", norm " << norm;
    const double usual = norm / std::sqrt(static_cast<double>(values.size()));
    for (const json& element : expected.at("elements")) {
      const std::size_t place = element.at(0);
      const double value = element.at(1), found = double{values.at(place)};
      EXPECT_LE(std::abs(found - value) / (std::abs(value) + usual), tolerance.at("element"))
          << parameter.name << "[" << place << "]: " << found << ", expected " << value;
    }
  }

  void check_training(const json& training) {
    SCOPED_TRACE(training.at("optimiser").get<std::string>());
    const json& tolerance = training.at("tolerance");
    initialise();
    LearningRate rate;
    rate.base = training.at("rate");
    LocalExchange exchange(*network, optimiser_of(training), rate);
    const auto batch = static_cast<std::uint64_t>(network->batch());
    ASSERT_EQ(training.at("losses").size(), all_steps);
    for (std::size_t step = 0; step < steps; ++step) {
      exchange.begin(step);
      test::forward_and_backward(*network, images.data(), {true, seed, step * batch, labels.data()},
                                 exchange);
      exchange.end();
      const double expected = training.at("losses").at(step);
      EXPECT_LE(relative(network->loss(), expected), tolerance.at("losses"))
          << "step " << step << ": loss " << network->loss() << ", expected " << expected;
    }
    if (steps < all_steps) return;

    network->forward(images.data(), {false, 0, 0, labels.data()});
    const double evaluation = training.at("evaluation");
    EXPECT_LE(relative(network->loss(), evaluation), tolerance.at("evaluation"))
        << "in evaluation: loss " << network->loss() << ", expected " << evaluation;
    const json& statistics = training.at("statistics");
    EXPECT_EQ(statistics.size(), network->statistics().size());
    for (const Parameter& parameter : network->statistics()) {
      std::vector<float> values(static_cast<std::size_t>(parameter.spec.shape.elements()));
      device->download(values.data(), parameter.weights);
      const double norm = sums_of(values, seed).norm, expected = statistics.at(parameter.name);
      EXPECT_LE(relative(norm, expected), tolerance.at("statistics"))
          << parameter.name << ": norm " << norm << ", expected " << expected;
    }
  }

  json record;
  std::uint64_t seed = 0;
  std::unique_ptr<Device> device;
  std::unique_ptr<Network> network;
  std::vector<float> images;
  std::vector<std::int32_t> labels;
  std::size_t steps = 0;
};

TEST_P(Oracle, Agrees) {
  // Both sides draw the same parameters, to the same bits.
  initialise();
  const json& parameters = record.at("parameters");
  ASSERT_EQ(parameters.size(), network->parameters().size());
  std::map<std::string, const json*> expected;
  for (const json& entry : parameters) expected[entry.at("name")] = &entry;
  for (const Parameter& parameter : network->parameters()) {
    ASSERT_EQ(expected.count(parameter.name), 1U) << "no record of " << parameter.name;
    const json& entry = *expected[parameter.name];
    Shape shape = parameter.spec.shape;
    std::vector<std::int64_t> extents;
    for (int axis = 0; axis < shape.rank(); ++axis) extents.push_back(shape[axis]);
    ASSERT_EQ(json(extents), entry.at("shape")) << parameter.name;
    std::vector<float> values(static_cast<std::size_t>(shape.elements()));
    device->download(values.data(), parameter.weights);
    ASSERT_EQ(checksum(values), entry.at("initial")) << parameter.name;
  }

  network->forward(images.data(), {true, seed, 0, labels.data()});
  const json& tolerance = record.at("tolerance");
  const double loss = record.at("loss");
  EXPECT_LE(relative(network->loss(), loss), tolerance.at("loss"))
      << "loss " << network->loss() << ", expected " << loss;
  network->backward();
  for (const Parameter& parameter : network->parameters()) {
    check_gradient(parameter, *expected[parameter.name], tolerance);
  }
  for (const json& training : record.at("training")) check_training(training);
}

std::vector<Case> cases() {
  // The loss of the second step is that of updated weights, and the third has the optimiser's
  // state. Ten steps show that rounding does not add up, which networks with few images and weights
  // show as well as others. None: the loss and the gradient alone.
  std::vector<Case> all{{"lenet", "reference", all_steps, all_steps},
                        {"squeezenet_64", "reference", 3, 3},
                        {"googlenet_80", "reference", 2, 3},
                        {"resnet34_64", "reference", 0, 2},
                        {"resnet34_padded_64", "reference", 0, 0}};
  std::vector<const char*> fast{"onednn"};
  if (has_cuda_device()) fast.insert(fast.end(), {"cudnn", "cudnn_nhwc"});
  for (const char* device : fast) {
    for (const char* record : {"lenet", "googlenet_80", "squeezenet_64", "resnet34_64"})
      all.push_back({record, device, all_steps, all_steps});
    for (const char* record : {"alexnet", "vgg16e_64", "resnet34_padded_64"})
      all.push_back({record, device, 3, all_steps});
    for (const char* record : {"googlenet", "squeezenet", "resnet34", "resnet34_padded"})
      all.push_back({record, device, 2, 3});
    all.push_back({"vgg16e", device, 0, 0});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Records, Oracle, ::testing::ValuesIn(cases()), [](const auto& info) {
  return std::string(info.param.record) + "_" + std::string(info.param.device);
});

}  // namespace
}  // namespace duplex
