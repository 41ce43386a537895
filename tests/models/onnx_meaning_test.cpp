// An imported network computes what its ONNX file means. A file that the program's layers cannot
// compute is refused in one line that names the node; nothing of it is left out.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/error.h"
#include "layers/kinds/normalisation.h"
#include "models/onnx/exporter.h"
#include "models/onnx/importer.h"

namespace duplex {
namespace {

using models::onnx::Attribute;
using models::onnx::Constant;
using models::onnx::decimal;
using models::onnx::Graph;
using models::onnx::Imported;
using models::onnx::Node;
using models::onnx::number;
using models::onnx::numbers;

Constant floats(const std::string& name, std::vector<std::int64_t> extents, float value = 0.5F) {
  Constant constant{name, std::move(extents)};
  constant.values = [count = constant.elements(), value](float* to) {
    std::fill_n(to, count, value);
  };
  return constant;
}

Constant integers(const std::string& name, std::vector<std::int64_t> values) {
  Constant constant{name, {static_cast<std::int64_t>(values.size())}, Constant::Type::int64};
  constant.numbers = std::move(values);
  return constant;
}

/// A graph of images of 3 channels, 8 by 8, whose last node makes the output.
Graph graph_of(std::vector<Node> nodes, std::vector<Constant> constants, std::int64_t images = 0) {
  Graph graph;
  graph.name = "net";
  graph.inputs = {{"images", {images, 3, 8, 8}}};
  graph.outputs = {{nodes.back().outputs[0], {}}};
  graph.nodes = std::move(nodes);
  graph.constants = std::move(constants);
  return graph;
}

/// Layers that make 10 values of a map "x" of so many channels.
std::vector<Node> with_end(std::vector<Node> nodes) {
  nodes.push_back({"conv", "Conv", {nodes.back().outputs[0], "w"}, {"conv"}});
  nodes.push_back({"all", "GlobalAveragePool", {"conv"}, {"all"}});
  nodes.push_back({"flat", "Flatten", {"all"}, {"flat"}});
  return nodes;
}

/// Returns what is said of a graph; nothing: it is taken.
std::string refusal(const Graph& graph) {
  try {
    models::onnx::network_of(graph, true);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

void expect_refused(const Graph& graph, const std::string& wanted) {
  const std::string said = refusal(graph);
  EXPECT_NE(said.find(wanted), std::string::npos) << "wanted: " << wanted << "\nsaid: " << said;
}

TEST(OnnxMeaning, PaddingOfRowsColumnsOrImagesIsRefused) {
  const auto padded = [](std::vector<std::int64_t> pads, std::int64_t channels) {
    return graph_of(with_end({{"pad", "Pad", {"images", "pads"}, {"pad"}}}),
                    {integers("pads", std::move(pads)), floats("w", {10, channels, 3, 3})});
  };
  for (std::size_t side = 0; side < 8; ++side)
    for (const std::int64_t by : {1, -1}) {
      std::vector<std::int64_t> pads(8, 0);
      pads[side] = by;
      const Graph graph = padded(pads, 4);
      if (side == 5 && by == 1)
        EXPECT_EQ(refusal(graph), "");
      else
        expect_refused(graph, "node 'pad' (Pad): only zeros behind the channels are known");
    }
  EXPECT_EQ(refusal(padded(std::vector<std::int64_t>(8, 0), 3)), "");

  // PyTorch may say the value; axes may be named in another order.
  Graph valued = padded({0, 0, 0, 0, 0, 2, 0, 0}, 5);
  valued.constants.push_back(floats("zero", {}, 0.0F));
  valued.constants.push_back(floats("one", {}, 1.0F));
  valued.constants.push_back(integers("axes", {1, 2, 3, 0}));
  valued.nodes[0].inputs.push_back("zero");
  EXPECT_EQ(refusal(valued), "");
  valued.nodes[0].inputs[2] = "one";
  expect_refused(valued, "only zeros behind the channels");
  valued.nodes[0].inputs[2].clear();
  valued.nodes[0].inputs.push_back("axes");
  expect_refused(valued, "only zeros behind the channels");
}

TEST(OnnxMeaning, ASoftmaxIsOverTheClasses) {
  const auto ended = [](bool flat, const Attribute* axis) {
    std::vector<Node> nodes{{"conv", "Conv", {"images", "w"}, {"conv"}}};
    if (flat) nodes.push_back({"flat", "Flatten", {"conv"}, {"flat"}});
    nodes.push_back({"softmax", "Softmax", {nodes.back().outputs[0]}, {"softmax"}});
    if (axis != nullptr) nodes.back().attributes["axis"] = *axis;
    return graph_of(nodes, {floats("w", {10, 3, 8, 8})});
  };
  const Attribute last = number(-1), classes = number(1), rows = number(2);
  for (const bool flat : {false, true}) {
    EXPECT_EQ(refusal(ended(flat, &classes)), "");
    expect_refused(ended(flat, &rows), "node 'softmax' (Softmax): only axis 1");
  }
  // The last axis is that of the classes in a row, and that of the only column in a map of 1x1.
  EXPECT_EQ(refusal(ended(true, &last)), "");
  EXPECT_EQ(refusal(ended(true, nullptr)), "");
  expect_refused(ended(false, &last), "node 'softmax' (Softmax): only axis 1");
  expect_refused(ended(false, nullptr), "node 'softmax' (Softmax): only axis 1");
  Graph older = ended(false, nullptr);  // Before opset 13 it was axis 1 where none is named.
  older.opset = 12;
  EXPECT_EQ(refusal(older), "");
}

TEST(OnnxMeaning, BatchNormalisationIsThatOfAnEvaluation) {
  Graph graph =
      graph_of(with_end({{"bn", "BatchNormalization", {"images", "s", "b", "m", "v"}, {"bn"}}}),
               {floats("s", {3}), floats("b", {3}), floats("m", {3}), floats("v", {3}),
                floats("w", {10, 3, 3, 3})});
  EXPECT_EQ(refusal(graph), "");
  Node& norm = graph.nodes[0];
  norm.outputs = {"bn", "mean", "variance"};
  expect_refused(graph, "node 'bn' (BatchNormalization): it is set to training");
  norm.outputs = {"bn", ""};
  EXPECT_EQ(refusal(graph), "");
  norm.attributes["training_mode"] = number(1);
  expect_refused(graph, "it is set to training");
  norm.attributes = {{"epsilon", decimal(-1e-3F)}};
  expect_refused(graph, "node 'bn' (BatchNormalization): its attribute 'epsilon' has to be from");
  norm.attributes = {{"momentum", decimal(2.0F)}};
  expect_refused(graph, "node 'bn' (BatchNormalization): its attribute 'momentum' has to be from");
}

/// ONNX counts the part that stays, and float32 has no 0.1 = 1 - 0.9.
TEST(OnnxMeaning, TheMomentumOfABatchNormalisationIsThatOfTheNetwork) {
  for (const float momentum : {0.1F, 0.01F, 0.2F, 0.25F, 0.003F, 0.0F, 1.0F}) {
    Model model("Momentum", {1, 3, 8, 8});
    BatchNormSpec spec;
    spec.momentum = momentum;
    const Model::Node norm = model.layer("norm", std::make_shared<BatchNormLayer>(spec),
                                         std::vector<Model::Node>{model.input()});
    model.softmax("softmax", model.linear("fc", norm, 10, false));
    const Graph graph = models::onnx::graph_of(model, [](const ParameterSpec&, float*) {});
    const Imported read = models::onnx::network_of(graph, true);
    const auto* layer = dynamic_cast<const BatchNormLayer*>(read.model.nodes()[1].layer.get());
    ASSERT_NE(layer, nullptr);
    EXPECT_EQ(layer->spec().momentum, momentum);
  }
}

TEST(OnnxMeaning, AReshapeMakesOneRowOfEachImage) {
  const auto shaped = [](std::vector<std::int64_t> extents, std::int64_t images) {
    return graph_of({{"conv", "Conv", {"images", "w"}, {"conv"}},
                     {"row", "Reshape", {"conv", "extents"}, {"row"}}},
                    {floats("w", {10, 3, 8, 8}), integers("extents", std::move(extents))}, images);
  };
  for (const auto& extents : {std::vector<std::int64_t>{1, -1}, {0, -1}, {-1, 10}, {1, 10}})
    EXPECT_EQ(refusal(shaped(extents, 0)), "") << extents[0] << " " << extents[1];
  EXPECT_EQ(refusal(shaped({4, -1}, 4)), "");
  expect_refused(shaped({2, -1}, 0), "node 'row' (Reshape): only the shape (N, 10)");
  expect_refused(shaped({1, -1}, 4), "only the shape (N, 10)");
  expect_refused(shaped({-1, -1}, 0), "only the shape (N, 10)");
}

TEST(OnnxMeaning, AConcatOfOneIsThat) {
  const Graph graph =
      graph_of(with_end({{"one", "Concat", {"images"}, {"one"}, {{"axis", number(1)}}}}),
               {floats("w", {10, 3, 3, 3})});
  ASSERT_EQ(refusal(graph), "");
  const Imported read = models::onnx::network_of(graph, true);
  EXPECT_EQ(read.model.nodes()[1].name, "conv");
  EXPECT_EQ(read.model.nodes()[1].inputs, std::vector<Model::Node>{read.model.input()});
}

/// A file's values that differ: 0, 1, 2, and so on.
Constant counted(const std::string& name, std::vector<std::int64_t> extents) {
  Constant constant{name, std::move(extents)};
  constant.values = [count = constant.elements()](float* to) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(i);
  };
  return constant;
}

/// A map that becomes a row, is multiplied with weights m, and goes on.
Graph multiplied(const std::vector<Node>& behind, std::vector<Constant> constants) {
  std::vector<Node> nodes = with_end({{"relu", "Relu", {"images"}, {"relu"}}});
  nodes.push_back({"fc", "MatMul", {"flat", "m"}, {"product"}});
  nodes.insert(nodes.end(), behind.begin(), behind.end());
  constants.push_back(floats("w", {10, 3, 3, 3}));
  constants.push_back(counted("m", {10, 4}));
  return graph_of(nodes, constants);
}

TEST(OnnxMeaning, AProductWithWeightsIsALinearLayer) {
  const Node sum{"sum", "Add", {"product", "b"}, {"sum"}},
      turned{"sum", "Add", {"b", "product"}, {"sum"}}, relu{"act", "Relu", {"sum"}, {"act"}};
  struct Case {
    std::vector<Node> behind;
    bool bias, relu;
  };
  const Case cases[] = {{{}, false, false},
                        {{sum}, true, false},
                        {{turned, relu}, true, true},
                        {{{"act", "Relu", {"product"}, {"act"}}}, false, true}};
  for (const Case& c : cases) {
    const Graph graph = multiplied(c.behind, {counted("b", {4})});
    ASSERT_EQ(refusal(graph), "");
    const Imported read = models::onnx::network_of(graph, true);
    const auto& nodes = read.model.nodes();
    // Behind it comes the softmax alone, and no activation.
    const Model::Entry& layer = nodes[nodes.size() - 2];
    EXPECT_EQ(layer.name, "fc");
    EXPECT_EQ(layer.layer->type(), "linear");
    EXPECT_EQ(layer.layer->traits().relu, c.relu);
    std::vector<float> weights(40), bias(4, -1.0F);
    read.arrays[read.arrays.size() - 2].values(weights.data());
    read.arrays.back().values(bias.data());
    for (std::size_t o = 0; o < 4; ++o) {
      EXPECT_EQ(bias[o], c.bias ? static_cast<float>(o) : 0.0F);
      for (std::size_t i = 0; i < 10; ++i)
        EXPECT_EQ(weights[o * 10 + i], static_cast<float>(i * 4 + o));
    }
  }
}

TEST(OnnxMeaning, AProductThatIsNoLinearLayerIsRefused) {
  const Node sum{"sum", "Add", {"product", "b"}, {"sum"}};
  expect_refused(multiplied({sum}, {floats("b", {1})}), "node 'fc' (MatMul): 'b' is not 4,");
  expect_refused(multiplied({sum}, {integers("b", {1, 2, 3, 4})}), "'b' has to be of float32");
  // The product is read twice, so that the sum is a layer of its own, which adds no constant.
  expect_refused(multiplied({{"act", "Relu", {"product"}, {"act"}},
                             {"sum", "Add", {"product", "b"}, {"sum"}},
                             {"both", "Add", {"act", "sum"}, {"both"}}},
                            {floats("b", {4})}),
                 "node 'sum' (Add): it reads 'b', which is no output of a layer above it");
  expect_refused(graph_of({{"fc", "MatMul", {"images", "m"}, {"product"}}}, {floats("m", {8, 4})}),
                 "node 'fc' (MatMul): it multiplies a map; only (N, values) is known");
  Graph graph = multiplied({}, {});
  graph.constants.back() = floats("m", {9, 4});
  expect_refused(graph, "node 'fc' (MatMul): 'm' has 9 inputs, and 10 come");
}

TEST(OnnxMeaning, RefusalsNameTheNode) {
  const Constant weights = floats("w", {10, 3, 3, 3});
  expect_refused(graph_of(with_end({{"sum", "Add", {"images", "images"}, {"sum"}}}), {weights}),
                 "node 'sum' (Add): it reads 'images' twice");
  expect_refused(
      graph_of({{"conv", "Conv", {"images", "w"}, {"conv"}, {{"kernel_shape", numbers({5, 5})}}}},
               {weights}),
      "node 'conv' (Conv): its kernel_shape is not that of its weights");
  expect_refused(graph_of({{"conv", "Conv", {"images", "w"}, {"conv"}}}, {weights}),
                 "its output 'conv', which node 'conv' makes, is a map of 6x6");
  expect_refused(
      graph_of(
          {{"lrn", "LRN", {"images"}, {"lrn"}, {{"size", number(3)}, {"alpha", decimal(-1.0F)}}}},
          {}),
      "node 'lrn' (LRN): its attribute 'alpha' has to be from 0");
  Graph graph = graph_of(with_end({{"relu", "Relu", {"images"}, {"relu"}}}), {weights});
  graph.nodes.insert(graph.nodes.begin() + 2, Node{"dead", "Sigmoid", {"conv"}, {"dead"}});
  expect_refused(graph, "node 'dead' leads to no output");
  graph = graph_of(with_end({{"relu", "Relu", {"images"}, {"relu"}}}), {weights});
  graph.nodes.push_back({"softmax", "Softmax", {"flat"}, {"softmax"}, {{"axis", number(1)}}});
  graph.nodes.push_back({"end", "Sigmoid", {"softmax"}, {"end"}});
  graph.outputs[0].name = "end";
  expect_refused(graph, "node 'end' (Sigmoid): it reads the output of a softmax");
}

/// The file's own input and output have names that layers may have, too.
TEST(OnnxMeaning, EveryTensorOfAFileHasANameOfItsOwn) {
  Model model("Names", {1, 3, 8, 8});
  Model::Node x = model.conv("images", model.input(), 4, valid(3, 1));
  x = model.sigmoid("probabilities", x);
  x = model.linear("values", x, 10, true);
  model.softmax("softmax", x);
  const Graph graph = models::onnx::graph_of(model, [](const ParameterSpec&, float*) {});
  std::set<std::string> made{graph.inputs[0].name};
  for (const Node& node : graph.nodes)
    for (const std::string& output : node.outputs)
      EXPECT_TRUE(made.insert(output).second) << output;
  const Imported read = models::onnx::network_of(graph, true);
  ASSERT_EQ(read.model.nodes().size(), model.nodes().size());
  for (std::size_t i = 1; i < model.nodes().size(); ++i)
    EXPECT_EQ(read.model.nodes()[i].name, model.nodes()[i].name);
}

}  // namespace
}  // namespace duplex
