// Networks as ONNX files: what is written and read again has the same layers, weights and outputs,
// and what the program's layers do not compute is refused by the name of its node. tests/onnx.sh
// gives the files that a test here writes to onnxruntime.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "core/error.h"
#include "layers/network.h"
#include "models/onnx/exporter.h"
#include "models/onnx/importer.h"
#include "models/registry.h"
#include "tests/layers/devices.h"
#include "tests/temporary_folder.h"

namespace duplex {
namespace {

using models::onnx::Attribute;
using models::onnx::Graph;
using models::onnx::Imported;
using models::onnx::numbers;

constexpr std::uint64_t seed = 7;

/// Running statistics start as 0 and 1, which would hide much: they get what a bias might have.
void draw(const ParameterSpec& spec, float* to) {
  draw_initial(spec, seed, to);
  if (spec.trained && spec.initial.bound != 0.0F) return;
  const RandomStream stream(seed, stream_of(spec.name));
  stream.fill_uniform(to, static_cast<std::size_t>(spec.shape.elements()));
  for (std::int64_t i = 0; i < spec.shape.elements(); ++i) to[i] += 0.25F;
}

std::vector<std::uint8_t> bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<float> images_for(const Model& model, std::int64_t batch) {
  std::vector<float> images(static_cast<std::size_t>(batch * model.entry(0).shape.elements()));
  RandomStream(seed, stream_of("images")).fill_uniform(images.data(), images.size());
  for (float& value : images) value = 2.0F * value - 1.0F;
  return images;
}

using Fill = std::function<void(const ParameterSpec& spec, float* to)>;

std::vector<float> outputs_of(const Model& model, Device& device, const Fill& fill) {
  constexpr std::int64_t batch = 2;
  Network network(model, device, batch, false);
  for (Parameter* parameter : network.state()) {
    ParameterSpec spec = parameter->spec;
    spec.name = parameter->name;
    std::vector<float> values(static_cast<std::size_t>(spec.shape.elements()));
    fill(spec, values.data());
    device.upload(parameter->weights, values.data());
  }
  const std::vector<float> images = images_for(model, batch);
  network.forward(images.data(), {false, 0, 0, nullptr});
  std::vector<float> values(static_cast<std::size_t>(batch * model.classes()));
  network.outputs(values.data());
  return values;
}

/// A small network with what LeNet, SqueezeNet and GoogLeNet lack.
Model mixed() {
  Model model("Mixed", {1, 4, 15, 15});
  ConvLayer::Options groups;
  groups.groups = 2;
  groups.bias = false;
  groups.relu = false;
  model.block("left");
  Model::Node x = model.conv("conv", model.input(), 8, padded(5, 2, 1), groups);
  x = model.batch_norm("norm", x, true);
  model.block("");
  const Model::Node left = model.sigmoid("sigmoid", x);
  x = model.conv("right", model.input(), 6, same(4, 2));
  x = model.average_pool("pool", x, same(3, 1));
  x = model.pad_channels("pad", x, 8);
  const Model::Node right = model.max_pool("small", x, valid(2, 1));
  x = model.add("sum", left, right, true);
  x = model.concat("both", {x, right});
  x = model.lrn("lrn", x, {3, 0.5F, 0.5F, 2.0F});
  x = model.relu("relu", x);
  x = model.dropout("dropout", x, 0.25F);
  x = model.linear("fc1", x, 12, true);
  x = model.linear("fc2", x, 10, false);
  model.softmax("softmax", x);
  return model;
}

/// Puts a network's file, its images and its outputs into the folder ONNX_OUT, where there is one:
/// tests/onnx.sh gives them to onnxruntime.
void keep_for_onnxruntime(const std::string& name, const std::vector<std::uint8_t>& file,
                          const std::vector<float>& images, const std::vector<float>& outputs) {
  const char* folder = std::getenv("ONNX_OUT");
  if (folder == nullptr) return;
  const auto write = [&](const char* end, const void* data, std::size_t bytes) {
    std::ofstream to(std::string(folder) + "/" + name + end, std::ios::binary);
    to.write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
    ASSERT_TRUE(to.good());
  };
  write(".onnx", file.data(), file.size());
  write(".images", images.data(), images.size() * sizeof(float));
  write(".outputs", outputs.data(), outputs.size() * sizeof(float));
}

struct Form {
  std::string net;
  std::int64_t input = 0;
  bool auxiliary = false;

  Model model() const {
    if (net == "mixed") return mixed();
    models::ModelOptions options;
    options.input = input;
    options.classes = 10;
    options.auxiliary = auxiliary;
    return models::build(net, options);
  }
};

const Form forms[] = {{"mixed"}, {"lenet"}, {"squeezenet", 64}, {"googlenet", 80, true}};

class OnnxFile : public ::testing::TestWithParam<Form> {
 protected:
  void SetUp() override {
    device = test::backend("onednn");
    if (!device) device = test::backend("reference");
  }
  TemporaryFolder folder;
  std::unique_ptr<Device> device;
};

TEST_P(OnnxFile, ReadAgainIsTheSame) {
  const Model model = GetParam().model();
  const std::string path = folder / "net.onnx";
  models::onnx::write_graph(path, models::onnx::graph_of(model, draw));
  const std::vector<std::uint8_t> file = bytes_of(path);
  const Graph graph = models::onnx::read_graph({file.data(), file.size()});
  const Imported read = models::onnx::network_of(graph, true);

  std::vector<const Model::Entry*> layers;  // The file lacks layers that only training runs.
  for (const Model::Entry& entry : model.nodes())
    if (!entry.training_only) layers.push_back(&entry);
  ASSERT_EQ(read.model.nodes().size(), layers.size());
  EXPECT_EQ(read.model.title(), model.title());
  std::size_t next = 0;
  for (std::size_t i = 1; i < layers.size(); ++i) {
    const Model::Entry& a = *layers[i];
    const Model::Entry& b = read.model.nodes()[i];
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(a.block, b.block) << a.name;
    EXPECT_EQ(a.shape.elements(), b.shape.elements()) << a.name;
    EXPECT_EQ(a.layer->type(), b.layer->type()) << a.name;
    EXPECT_EQ(a.layer->traits().relu, b.layer->traits().relu) << a.name;
    for (const ParameterSpec& spec : model.parameters(a)) {
      const Imported::Array& array = read.arrays.at(next++);
      EXPECT_EQ(array.name, spec.name);
      ASSERT_EQ(array.shape, spec.shape) << spec.name;
      std::vector<float> wanted(static_cast<std::size_t>(spec.shape.elements())), found(wanted);
      draw(spec, wanted.data());
      array.values(found.data());
      EXPECT_TRUE(wanted == found) << spec.name;
    }
  }
  EXPECT_EQ(next, read.arrays.size());

  std::map<std::string, const Imported::Array*> arrays;
  for (const Imported::Array& array : read.arrays) arrays[array.name] = &array;
  const std::vector<float> wanted = outputs_of(model, *device, draw);
  const std::vector<float> found =
      outputs_of(read.model, *device,
                 [&](const ParameterSpec& spec, float* to) { arrays.at(spec.name)->values(to); });
  EXPECT_EQ(wanted, found);
  keep_for_onnxruntime(GetParam().net, file, images_for(model, 2), wanted);
}

INSTANTIATE_TEST_SUITE_P(Networks, OnnxFile, ::testing::ValuesIn(forms),
                         [](const auto& info) { return info.param.net; });

/// What is said of LeNet's graph where it is changed.
std::string refusal(const std::function<void(Graph& graph)>& change) {
  Graph graph = models::onnx::graph_of(Form{"lenet"}.model(), draw);
  change(graph);
  try {
    models::onnx::network_of(graph, true);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

models::onnx::Node& node(Graph& graph, const std::string& name) {
  for (models::onnx::Node& each : graph.nodes)
    if (each.name == name) return each;
  throw Error("no node " + name);
}

TEST(OnnxImport, RefusesWhatItsLayersDoNotCompute) {
  EXPECT_EQ(refusal([](Graph&) {}), "");
  const std::pair<std::function<void(Graph&)>, const char*> cases[] = {
      {[](Graph& g) { node(g, "conv2").type = "ConvTranspose"; },
       "node 'conv2' (ConvTranspose): the program has no such layer"},
      {[](Graph& g) {
         node(g, "conv2").attributes["dilations"] = numbers({2, 2});
       },
       "node 'conv2' (Conv): only dilations of 1"},
      {[](Graph& g) {
         node(g, "conv2").attributes["pads"] = numbers({1, 0, 0, 1});
       },
       "pads are neither"},
      {[](Graph& g) {
         node(g, "conv2").attributes["strides"] = numbers({2, 1});
       },
       "only square windows"},
      {[](Graph& g) {
         node(g, "conv2").attributes["strides"] = numbers({0, 0});
       },
       "strides"},
      {[](Graph& g) {
         node(g, "conv2").attributes["pads"] = numbers({-1, -1, -1, -1});
       },
       "pads"},
      {[](Graph& g) { node(g, "conv2").inputs[0] = "nowhere"; },
       "it reads 'nowhere', which is no output of a layer above it"},
      {[](Graph& g) { node(g, "conv2").inputs[1] = "images"; }, "has to be a constant"},
      {[](Graph& g) { node(g, "conv2").inputs.resize(1); }, "it lacks input 2"},
      {[](Graph& g) { node(g, "conv2").inputs[0] = node(g, "conv1").inputs[0]; },
       "node 'conv2' (Conv)"},
      {[](Graph& g) { node(g, "pool2").outputs[0] = "pool1"; }, "another node makes 'pool1', too"},
      {[](Graph& g) {
         node(g, "pool2").attributes["kernel_shape"] = numbers({99, 99});
       },
       "node 'pool2' (MaxPool)"},
      {[](Graph& g) { g.outputs[0].name = "nowhere"; }, "no node makes its output"},
      {[](Graph& g) { g.outputs[0].name = "pool1"; }, "leads to no output"},
      {[](Graph& g) { g.outputs.clear(); }, "0 outputs"},
      {[](Graph& g) { g.inputs.clear(); }, "no input"},
      {[](Graph& g) {
         g.inputs[0].extents = {0, 1, 28, 0};
       },
       "fixed square"},
      {[](Graph& g) {
         g.inputs[0].extents = {0, 1, 28, 30};
       },
       "fixed square"},
      {[](Graph& g) {
         g.constants[0].extents = {25, 20};
       },
       "extents"},
      {[](Graph& g) {
         g.constants[1].extents = {4, 5};
       },
       "is not 20, as the layer needs it"},
  };
  for (const auto& [change, wanted] : cases) {
    const std::string said = refusal(change);
    EXPECT_NE(said.find(wanted), std::string::npos) << "wanted: " << wanted << "\nsaid: " << said;
  }
}

TEST(OnnxImport, TakesWhatOthersWrite) {
  // Weights of a linear layer the other way round, without a bias; no softmax at the end; a name
  // that cannot be one here; constants that are named as inputs; a constant by another name.
  Graph graph = models::onnx::graph_of(Form{"lenet"}.model(), draw);
  node(graph, "conv1").inputs[2] = "shared";
  graph.nodes.insert(graph.nodes.begin(),
                     {"Identity_0", "Identity", {"conv1.bias"}, {"shared"}, {}});
  models::onnx::Node& fc2 = node(graph, "fc2");
  fc2.name = "/classifier/1/fc2.Gemm";
  fc2.attributes.clear();
  fc2.inputs.resize(2);
  for (models::onnx::Constant& constant : graph.constants) {
    if (constant.name == "fc2.weight") std::swap(constant.extents[0], constant.extents[1]);
    graph.inputs.push_back({constant.name, constant.extents});
  }
  graph.nodes.pop_back();
  graph.outputs[0].name = "fc2";
  const Imported read = models::onnx::network_of(graph, true);
  const auto& nodes = read.model.nodes();
  EXPECT_EQ(nodes.back().layer->type(), "softmax");
  EXPECT_EQ(nodes[nodes.size() - 2].name, "_classifier_1_fc2_Gemm");
  const Imported::Array &weights = read.arrays[read.arrays.size() - 2], &bias = read.arrays.back();
  ASSERT_EQ(weights.shape, (Shape{10, 500}));
  std::vector<float> turned(5000), found(5000), zeros(10, 1.0F);
  for (const models::onnx::Constant& constant : graph.constants)
    if (constant.name == "fc2.weight") constant.values(turned.data());
  weights.values(found.data());
  for (std::size_t o = 0; o < 10; ++o)
    for (std::size_t i = 0; i < 500; ++i) ASSERT_EQ(found[o * 500 + i], turned[i * 10 + o]);
  bias.values(zeros.data());
  EXPECT_EQ(zeros, std::vector<float>(10, 0.0F));
}

/// PyTorch's ceil_mode, as its GoogLeNet and SqueezeNet have it, is 'same' where it gives the same.
TEST(OnnxImport, KnowsCeilMode) {
  const auto pooled = [](std::int64_t input, std::vector<std::int64_t> pads) {
    Graph graph;
    graph.name = "pool";
    graph.inputs = {{"images", {0, 1, input, input}}};
    Attribute ceil;
    ceil.type = Attribute::Type::number;
    ceil.number = 1;
    graph.nodes = {{"pool",
                    "MaxPool",
                    {"images"},
                    {"pool"},
                    {{"kernel_shape", numbers({3, 3})},
                     {"strides", numbers({2, 2})},
                     {"pads", numbers(std::move(pads))},
                     {"ceil_mode", ceil}}}};
    graph.nodes.push_back({"all", "GlobalMaxPool", {"pool"}, {"all"}});
    graph.outputs = {{"all", {}}};
    return models::onnx::network_of(graph, true).model.nodes()[1].shape.h();
  };
  EXPECT_EQ(pooled(112, {0, 0, 0, 0}), 56);
  EXPECT_EQ(pooled(109, {0, 0, 0, 0}), 54);  // All windows fit.
  EXPECT_THROW(pooled(12, {1, 1, 0, 0}), Error);
}

/// PyTorch's newer exporter writes so what the older one wrote as a GlobalAveragePool.
TEST(OnnxImport, KnowsTheMeanOfAMap) {
  const auto pooled = [](std::vector<std::int64_t> axes) {
    Graph graph;
    graph.name = "mean";
    graph.inputs = {{"images", {0, 3, 12, 12}}};
    graph.nodes = {
        {"mean", "ReduceMean", {"images"}, {"mean"}, {{"axes", numbers(std::move(axes))}}}};
    graph.outputs = {{"mean", {}}};
    return models::onnx::network_of(graph, true).model.nodes()[1].shape;
  };
  EXPECT_EQ(pooled({-1, -2}), (Shape{1, 3, 1, 1}));
  EXPECT_EQ(pooled({2, 3}), (Shape{1, 3, 1, 1}));
  EXPECT_THROW(pooled({1}), Error);
  EXPECT_THROW(pooled({}), Error);
}

TEST(OnnxReader, RefusesEveryBeginningOfAFile) {
  const TemporaryFolder folder;
  const std::string path = folder / "net.onnx";
  models::onnx::write_graph(path, models::onnx::graph_of(Form{"lenet"}.model(), draw));
  const std::vector<std::uint8_t> file = bytes_of(path);
  for (std::size_t size = 0; size < file.size(); size += size < 4000 ? 1 : 9973)
    EXPECT_THROW(models::onnx::network_of(models::onnx::read_graph({file.data(), size}), true),
                 Error)
        << size << " bytes";
}

}  // namespace
}  // namespace duplex
