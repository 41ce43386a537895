// Asks cuDNN itself, not the stand-in, for the engines of the convolutions of all networks. From
// 9.8 on it answers for a GPU that is described and need not be there.
#include "core/cudnn/engines/engines.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/cudnn/engines/candidates.h"
#include "core/cudnn/engines/plan.h"
#include "core/cudnn/layout.h"
#include "core/error.h"
#include "models/registry.h"

namespace duplex::cudnn {
namespace {

/// Describes an H100, in the words of CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION.
constexpr const char* h100 = R"({
  "deviceName": "NVIDIA H100 80GB HBM3", "deviceVer": 900, "cudaDeviceId": 0, "pciDeviceId": 9008,
  "driverVer": 13000, "multiProcessorCount": 132, "totalGlobalMem": 85028896768,
  "l2CacheSize": 52428800, "smClockRateKHz": 1980000, "memClockRateKHz": 2619000,
  "warpSize": 32, "maxThreadsPerSM": 2048, "maxCtasPerSM": 32, "maxThreadsPerBlock": 1024,
  "maxBlockSize": [1024, 1024, 64], "maxGridSize": [2147483647, 65535, 65535],
  "maxRegistersPerSM": 65536, "regsPerBlock": 65536, "maxSharedMemoryPerBlock": 49152,
  "maxSharedMemoryPerBlockOptin": 232448, "reservedSharedMemoryPerBlock": 1024,
  "supportCoopLaunch": 1, "isTccDriver": 0})";
/// cuDNN loads CUDA's compiler for every engine and unloads it again, which leaves some memory
/// behind each time. Loaded for good, it does so once, and LeakSanitizer can tell whose it is
/// (make/leaks.supp).
[[maybe_unused]] const void* const compiler = ::dlopen(
    ("libnvrtc.so." + std::to_string(CUDART_VERSION / 1000)).c_str(), RTLD_LAZY | RTLD_NODELETE);

constexpr std::size_t room = std::size_t{5} << 30;
constexpr std::int64_t batch = 64;
constexpr std::size_t timed_at_most = 12;

Descriptor described(const std::string& gpu) {
#if CUDNN_VERSION >= 90800
  if (cudnnGetVersion() < 90800) return {};
  Descriptor descriptor = make(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  set(descriptor, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, gpu.data(),
      static_cast<std::int64_t>(gpu.size()));
  finish(descriptor);
  return descriptor;
#else
  static_cast<void>(gpu);
  return {};
#endif
}

struct Way {
  Precision precision;
  Order order;

  Type type() const { return precision == Precision::bf16 ? Type::bf16 : Type::float32; }
};

class Engines : public ::testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    target_.described = described(h100);
    if (!target_.described) GTEST_SKIP() << "cuDNN before 9.8 does not answer without a GPU";
  }

  bool has_engine(const ConvGraph& graph) const {
    Descriptors parts;
    const Descriptor whole = describe(target_, graph, parts);
    return !engines_of(whole, target_, GetParam().precision, room, 1).empty();
  }
  /// The engines of a graph that may be used and convert its inputs down, of as many as are timed.
  std::int64_t converting_down(const ConvGraph& graph) const {
    Descriptors parts;
    const Descriptor whole = describe(target_, graph, parts);
    const std::vector<Engine> engines =
        engines_of(whole, target_, GetParam().precision, room, timed_at_most);
    return std::count_if(engines.begin(), engines.end(), [](const Engine& engine) {
      const auto notes = numerical_notes(engine.configuration);
      return !notes || std::find(notes->begin(), notes->end(),
                                 CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS) != notes->end();
    });
  }

 private:
  Target target_;
};

/// Returns the graph that core/cudnn/operations/conv.cpp asks for.
ConvGraph graph_of(const ConvSpec& spec, const Shape& x, const Way& way) {
  const auto view = [&](const Shape& shape) {
    View it = view_of(desc_of(shape, way.order, way.type()));
    it.order = way.order;
    return it;
  };
  ConvGraph graph;
  graph.window = spec.window;
  graph.x = view(x);
  graph.weights = view(weights_shape(spec, x));
  graph.y = view(output_shape(spec, x));
  graph.bias = spec.bias;
  graph.relu = spec.relu;
  return graph;
}

TEST_P(Engines, AreThereForEveryConvolution) {
  std::set<std::string> asked;
  for (const auto& [name, build] : models::all()) {
    const Model model = build({});
    for (const Model::Entry& entry : model.nodes()) {
      const auto* layer = dynamic_cast<const ConvLayer*>(entry.layer.get());
      if (layer == nullptr) continue;
      const Shape one = model.input_shapes(entry)[0], x{batch, one.c(), one.h(), one.w()};
      ConvGraph graph = graph_of(layer->spec(x), x, GetParam());
      if (!asked.insert(graph.key()).second) continue;
      SCOPED_TRACE(name + " " + entry.name + ", input " + x.str());
      EXPECT_TRUE(has_engine(graph)) << "forward, with bias and ReLU";
      graph.bias = graph.relu = false;
      graph.direction = Direction::data;
      EXPECT_TRUE(has_engine(graph)) << "gradient of the input";
      graph.direction = Direction::weights;
      EXPECT_TRUE(has_engine(graph)) << "gradient of the weights";
    }
  }
  EXPECT_GT(asked.size(), 50U);
}

/// Resnet34 has convolutions of every kind.
TEST_P(Engines, ConvertNoInputsDown) {
  const Model model = models::build("resnet34", {});
  std::set<std::string> asked;
  for (const Model::Entry& entry : model.nodes()) {
    const auto* layer = dynamic_cast<const ConvLayer*>(entry.layer.get());
    if (layer == nullptr) continue;
    const Shape one = model.input_shapes(entry)[0], x{batch, one.c(), one.h(), one.w()};
    ConvGraph graph = graph_of(layer->spec(x), x, GetParam());
    graph.bias = graph.relu = false;
    if (!asked.insert(graph.key()).second) continue;
    for (const Direction direction : {Direction::forward, Direction::data, Direction::weights}) {
      graph.direction = direction;
      EXPECT_EQ(converting_down(graph), 0) << entry.name;
    }
  }
  EXPECT_GT(asked.size(), 5U);
}

/// Graphs of a 3x3 convolution whose engines cuDNN compiles, among others.
std::vector<ConvGraph> some_graphs() {
  ConvSpec spec;
  spec.filters = 64;
  spec.window = {3, 3, 1, 1, {1, 1, 1, 1}};
  spec.relu = true;
  std::vector<ConvGraph> graphs;
  for (const std::int64_t channels : {64, 128})
    graphs.push_back(graph_of(spec, {batch, channels, 28, 28}, {Precision::bf16, Order::nhwc}));
  for (const Direction direction : {Direction::forward, Direction::data, Direction::weights}) {
    graphs.push_back(graphs[0]);
    graphs.back().bias = graphs.back().relu = false;
    graphs.back().direction = direction;
  }
  return graphs;
}

TEST(Candidates, OfSeveralThreadsAreThoseOfOne) {
  if (!described(h100)) GTEST_SKIP() << "cuDNN before 9.8 does not answer without a GPU";
  const std::vector<ConvGraph> graphs = some_graphs();
  const auto made = [&](std::size_t threads) {
    std::vector<Target> targets(threads);
    for (Target& target : targets) target.described = described(h100);
    auto candidates = made_by_threads(graphs.size(), targets, [&](std::size_t i, const Target& to) {
      return candidates_for(graphs[i], to, {Precision::bf16, room}, {});
    });
    std::vector<std::vector<std::pair<std::int64_t, std::size_t>>> engines;
    for (auto& of_graph : candidates) {
      engines.emplace_back();
      for (const auto& plan : of_graph.get().plans)
        engines.back().emplace_back(plan->engine(), plan->workspace());
    }
    return engines;
  };
  const auto expected = made(1);
  ASSERT_EQ(expected.size(), graphs.size());
  for (const auto& engines : expected) EXPECT_FALSE(engines.empty());
  EXPECT_EQ(made(3), expected);
}

/// An error of one graph is thrown where its candidates are asked for, and the others are there.
TEST(Candidates, ThatFailAreToldApart) {
  for (const std::size_t threads : {1, 4}) {
    auto made = made_by_threads(10, std::vector<Target>(threads),
                                [](std::size_t i, const Target&) -> Candidates {
                                  if (i % 3 == 1) throw Error(std::to_string(i));
                                  return {{}, i % 2 == 0};
                                });
    ASSERT_EQ(made.size(), 10U);
    for (std::size_t i = made.size(); i-- > 0;) {
      std::string message = "none";
      try {
        EXPECT_EQ(made[i].get().remembered, i % 2 == 0);
      } catch (const Error& error) {
        message = error.what();
      }
      EXPECT_EQ(message, i % 3 == 1 ? std::to_string(i) : "none");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    H100, Engines,
    ::testing::Values(Way{Precision::float32, Order::nchw}, Way{Precision::float32, Order::nhwc},
                      Way{Precision::tf32, Order::nchw}, Way{Precision::tf32, Order::nhwc},
                      Way{Precision::bf16, Order::nchw}, Way{Precision::bf16, Order::nhwc}),
    [](const auto& info) {
      return name_of(info.param.precision) + (info.param.order == Order::nhwc ? "_nhwc" : "_nchw");
    });

}  // namespace
}  // namespace duplex::cudnn
