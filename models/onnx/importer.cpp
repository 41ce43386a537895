#include "models/onnx/importer.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/error.h"
#include "layers/kinds/activation.h"
#include "layers/kinds/join.h"
#include "layers/kinds/linear.h"
#include "layers/kinds/loss.h"
#include "layers/kinds/normalisation.h"
#include "layers/kinds/pool.h"
#include "models/file/words.h"
#include "models/onnx/constants.h"
#include "models/onnx/graph_head.h"
#include "models/onnx/layer_names.h"
#include "models/onnx/node_attributes.h"

namespace duplex::models::onnx {
namespace {

class Importer {
 public:
  Importer(const Graph& graph, bool blocks)
      : graph_(graph),
        names_(blocks),
        imported_{Model(title_of(graph), sample_of(graph)), {}},
        constants_(graph) {
    for (const Value& value : graph.inputs)
      if (constants_.find(value.name) == nullptr) {
        places_[value.name] = model().input();
        batch_ = value.extents[0];
      }
    for (const Node& node : graph.nodes) {
      for (const std::string& input : node.inputs) readers_[input].push_back(&node);
      if (node.type == "Identity" && node.inputs.size() == 1)  // PyTorch writes equal weights once.
        if (const Constant* constant = constants_.find(node.inputs[0]))
          constants_.alias(node.outputs[0], constant);
    }
    if (graph.outputs.size() != 1)
      throw Error("it has " + std::to_string(graph.outputs.size()) +
                  " outputs; a network here has one");
    readers_[graph.outputs[0].name].push_back(nullptr);
  }

  Imported network() {
    if (graph_.nodes.size() > file::most_layers)
      throw Error("it has " + std::to_string(graph_.nodes.size()) + " nodes; " +
                  std::to_string(file::most_layers) + " are the most");
    for (const Node& node : graph_.nodes) {
      node_ = &node;
      if (joined_.count(&node) > 0) {
        if (reads_row()) rows_.insert(node.outputs[0]);
        continue;
      }
      try {
        if (places_.count(node.outputs[0]) > 0)
          throw Error("another node makes '" + node.outputs[0] + "', too");
        add_node();
        if (makes_row()) rows_.insert(node.outputs[0]);
      } catch (const Error& error) {
        const std::string named = node.name.empty() ? node.outputs[0] : node.name;
        throw Error("node '" + named + "' (" + node.type + "): " + error.what());
      }
    }
    const auto end = places_.find(graph_.outputs[0].name);
    if (end == places_.end()) throw Error("no node makes its output");
    check_ends(end->second);
    if (!model().entry(end->second).layer->loss_kind()) {
      const LayerNames::Name name = names_.own("softmax");
      model().block(name.block);
      model().softmax(name.layer, end->second);
    }
    return std::move(imported_);
  }

 private:
  Model& model() { return imported_.model; }

  /// Every layer leads to the output, which is a loss or can be given to one.
  void check_ends(Model::Node end) {
    if (end == model().input()) throw Error("it has no layers");
    std::set<Model::Node> read{end};
    for (const Model::Entry& entry : model().nodes())
      read.insert(entry.inputs.begin(), entry.inputs.end());
    for (Model::Node node = 1; node <= model().output(); ++node)
      if (read.count(node) == 0)
        throw Error("node '" + model().entry(node).name + "' leads to no output");
    const Shape& shape = model().shape(end);
    if (shape.h() != 1 || shape.w() != 1)
      throw Error("its output '" + graph_.outputs[0].name + "', which node '" +
                  model().entry(end).name + "' makes, is a map of " + std::to_string(shape.h()) +
                  "x" + std::to_string(shape.w()) + " and not one value for each class");
  }

  const std::string& input(std::size_t which) const {
    if (which >= node_->inputs.size() || node_->inputs[which].empty())
      throw Error("it lacks input " + std::to_string(which + 1));
    return node_->inputs[which];
  }

  Model::Node x(std::size_t which = 0) const {
    const auto found = places_.find(input(which));
    if (found == places_.end())
      throw Error("it reads '" + input(which) + "', which is no output of a layer above it");
    return found->second;
  }

  bool has(std::size_t which) const {
    return which < node_->inputs.size() && !node_->inputs[which].empty();
  }

  const Constant& constant(std::size_t which, Constant::Type type) const {
    return constants_.get(input(which), type);
  }

  /// Returns the node of that type which the tensor goes to, if it goes to no other; else null.
  const Node* follower(const std::string& tensor, const char* type, std::size_t inputs) const {
    const auto readers = readers_.find(tensor);
    if (readers == readers_.end() || readers->second.size() != 1) return nullptr;
    const Node* reader = readers->second[0];
    return reader != nullptr && reader->type == type && reader->inputs.size() == inputs ? reader
                                                                                        : nullptr;
  }

  /// Returns the ReLU that the layer of this node computes, too, as a list: empty if there is none.
  std::vector<const Node*> relu() const { return relu_behind(node_->outputs[0]); }
  std::vector<const Node*> relu_behind(const std::string& tensor) const {
    const Node* relu = follower(tensor, "Relu", 1);
    return relu != nullptr ? std::vector<const Node*>{relu} : std::vector<const Node*>{};
  }

  // ---- Layers.
  /// `joined` are nodes behind this one, in order, which the layer computes, too.
  void add(std::shared_ptr<const Layer> layer, std::vector<Model::Node> inputs,
           const std::vector<const Node*>& joined = {}) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (std::count(inputs.begin(), inputs.end(), inputs[i]) > 1)
        throw Error("it reads '" + input(i) + "' twice");
      const auto& from = model().entry(inputs[i]).layer;
      if (from && from->loss_kind())
        throw Error("it reads the output of a softmax, with which a network here ends");
    }
    const LayerNames::Name name = names_.of(node_->name.empty() ? node_->type : node_->name);
    model().block(name.block);
    const Model::Node made = model().layer(name.layer, std::move(layer), std::move(inputs));
    if (static_cast<double>(model().shape(made).elements()) > file::most_values)
      throw Error("its output would have more than 2^31 values for an image");
    places_[node_->outputs[0]] = made;
    for (const Node* node : joined) {
      if (!places_.emplace(node->outputs[0], made).second)
        throw Error("another node makes '" + node->outputs[0] + "', too");
      joined_.insert(node);
    }
  }

  /// Returns whether ONNX has the node's output as (N, values) and not as a map.
  bool makes_row() const {
    const std::string& type = node_->type;
    if (type == "ReduceMean") return NodeAttributes(*node_).number("keepdims", 1) == 0;
    return type == "Flatten" || type == "Reshape" || type == "Gemm" || reads_row();
  }

  bool reads_row() const {
    return std::any_of(node_->inputs.begin(), node_->inputs.end(),
                       [this](const std::string& input) { return rows_.count(input) > 0; });
  }

  /// The node's output is what it reads: a linear layer, or a softmax, takes a map as it is.
  void pass() { places_[node_->outputs[0]] = x(); }

  /// Adds the values of a parameter of the layer that was added last.
  void fill(std::size_t which, std::function<void(float*)> values) {
    const Model::Entry& entry = model().entry(model().output());
    const ParameterSpec spec = model().parameters(entry).at(which);
    imported_.arrays.push_back({spec.name, spec.shape, std::move(values)});
  }

  /// Adds those of a constant, whose shape has to be the parameter's.
  void fill(std::size_t which, const Constant& from) {
    const Model::Entry& entry = model().entry(model().output());
    const Shape wanted = model().parameters(entry).at(which).shape;
    bool same = static_cast<int>(from.extents.size()) == wanted.rank();
    for (int axis = 0; same && axis < wanted.rank(); ++axis)
      same = from.extents[static_cast<std::size_t>(axis)] == wanted[axis];
    if (!same)
      throw Error("'" + from.name + "' is not " + wanted.str() + ", as the layer needs it");
    fill(which, from.values);
  }

  void add_node() {
    const std::string& type = node_->type;
    const NodeAttributes attributes(*node_);
    if (type == "Conv") {
      add_conv(attributes);
    } else if (type == "Gemm") {
      add_gemm(attributes);
    } else if (type == "MatMul") {
      add_product();
    } else if (type == "MaxPool" || type == "AveragePool") {
      const Geometry geometry = attributes.geometry(model().shape(x()), type == "AveragePool");
      add(std::make_shared<PoolLayer>(type == "MaxPool" ? PoolKind::max : PoolKind::average,
                                      geometry),
          {x()});
    } else if (type == "GlobalMaxPool" || type == "GlobalAveragePool") {
      const PoolKind kind = type == "GlobalMaxPool" ? PoolKind::max : PoolKind::average;
      add(std::make_shared<PoolLayer>(kind, whole_map()), {x()});
    } else if (type == "ReduceMean") {
      add_mean(attributes);
    } else if (type == "LRN") {
      add(std::make_shared<LrnLayer>(attributes.lrn()), {x()});
    } else if (type == "BatchNormalization") {
      add_batch_norm(attributes);
    } else if (type == "Relu" || type == "Sigmoid") {
      const ActivationKind kind = type == "Relu" ? ActivationKind::relu : ActivationKind::sigmoid;
      add(std::make_shared<ActivationLayer>(kind), {x()});
    } else if (type == "Dropout") {
      add_dropout(attributes);
    } else if (type == "Concat") {
      if (attributes.number("axis", 1) != 1) throw Error("only axis 1, the channels, is known");
      std::vector<Model::Node> inputs;
      for (std::size_t i = 0; i < node_->inputs.size(); ++i) inputs.push_back(x(i));
      if (inputs.empty() || inputs.size() > file::most_inputs)
        throw Error("it has to have 1 to " + std::to_string(file::most_inputs) + " inputs");
      if (inputs.size() == 1)  // DenseNet begins its blocks so.
        pass();
      else
        add(std::make_shared<ConcatLayer>(), inputs);
    } else if (type == "Add") {
      if (node_->inputs.size() != 2) throw Error("it has to have two inputs");
      const std::vector<Model::Node> inputs{x(0), x(1)};
      if (rows_.count(input(0)) != rows_.count(input(1)))
        throw Error("it adds a map and what is none");
      add(std::make_shared<AddLayer>(!relu().empty()), inputs, relu());
    } else if (type == "Pad") {
      add_padding(attributes);
    } else if (type == "Softmax" || type == "LogSoftmax") {
      // The last axis is that of the classes where there are but two. Opset 13 made it the usual.
      const bool row = rows_.count(input(0)) > 0;
      const std::int64_t axis = attributes.number("axis", graph_.opset < 13 ? 1 : -1);
      if (axis != 1 && !(row && axis == -1)) throw Error("only axis 1, the classes, is known");
      add(std::make_shared<LossLayer>(LossKind::softmax_cross_entropy, 1.0F), {x()});
    } else if (type == "Flatten") {
      if (attributes.number("axis", 1) != 1) throw Error("only axis 1 is known");
      pass();
    } else if (type == "Reshape") {
      check_reshape(constant(1, Constant::Type::int64).numbers);
      pass();
    } else if (type == "Identity") {
      if (constants_.find(input(0)) == nullptr) pass();
    } else {
      throw Error("the program has no such layer (docs/onnx.md lists those that it has)");
    }
  }

  /// A shape of one row for each image. 0 stands for the extent that comes, -1 for all that is
  /// left.
  void check_reshape(const std::vector<std::int64_t>& extents) {
    const std::int64_t all = model().shape(x()).elements(), images = batch_ > 0 ? batch_ : 1;
    const bool fits =
        extents.size() == 2 &&
        (extents[1] == all || (extents[1] == -1 && (extents[0] == 0 || extents[0] == images)));
    if (!fits)
      throw Error("only the shape (N, " + std::to_string(all) + ") of all values is known");
  }

  /// PyTorch's newer exporter writes a pooling of the whole map as the mean over rows and columns.
  void add_mean(const NodeAttributes& attributes) {
    std::vector<std::int64_t> axes = attributes.numbers("axes");
    if (has(1)) axes = constant(1, Constant::Type::int64).numbers;
    for (std::int64_t& axis : axes) axis += axis < 0 ? 4 : 0;
    std::sort(axes.begin(), axes.end());
    if (axes != std::vector<std::int64_t>{2, 3})
      throw Error("only the axes 2 and 3, rows and columns, are known");
    add(std::make_shared<PoolLayer>(PoolKind::average, whole_map()), {x()});
  }

  void add_conv(const NodeAttributes& attributes) {
    const Constant& weights = constant(1, Constant::Type::float32);
    ConvLayer::Options options;
    options.groups = attributes.number("group", 1);
    options.bias = has(2);
    options.relu = !relu().empty();
    const std::int64_t filters = extent(weights, 0, 4);
    const Geometry geometry = attributes.geometry(model().shape(x()), weights);
    if (options.groups < 1 || options.groups > file::largest_number)
      throw Error("group has to be 1 or more");
    add(std::make_shared<ConvLayer>(filters, geometry, options), {x()}, relu());
    fill(0, weights);
    if (options.bias) fill(1, constant(2, Constant::Type::float32));
  }

  void add_gemm(const NodeAttributes& attributes) {
    if (attributes.decimal("alpha", 1) != 1 || attributes.decimal("beta", 1) != 1 ||
        attributes.number("transA", 0) != 0)
      throw Error("only alpha 1, beta 1 and transA 0 are known");
    const Constant* bias = has(2) ? &constant(2, Constant::Type::float32) : nullptr;
    add_linear(attributes.number("transB", 0) == 1, bias, relu());
  }

  /// A product of rows with weights, and the bias that is added to nothing but it.
  void add_product() {
    if (rows_.count(input(0)) == 0) throw Error("it multiplies a map; only (N, values) is known");
    const Constant* bias = nullptr;
    std::vector<const Node*> joined = relu();
    if (const Node* sum = follower(node_->outputs[0], "Add", 2)) {
      const std::string& other = sum->inputs[sum->inputs[0] == node_->outputs[0] ? 1 : 0];
      if (constants_.find(other) != nullptr && sum->attributes.empty()) {
        bias = &constants_.get(other, Constant::Type::float32);
        joined = relu_behind(sum->outputs[0]);
        joined.insert(joined.begin(), sum);
      }
    }
    add_linear(false, bias, joined);
  }

  /// `turned`: the weights are (outputs, inputs), as they are here, and not (inputs, outputs).
  void add_linear(bool turned, const Constant* bias, const std::vector<const Node*>& joined) {
    const bool relu = !joined.empty() && joined.back()->type == "Relu";
    const Constant& weights = constant(1, Constant::Type::float32);
    const std::int64_t outputs = extent(weights, turned ? 0 : 1, 2);
    const std::int64_t inputs = extent(weights, turned ? 1 : 0, 2);
    add(std::make_shared<LinearLayer>(outputs, relu), {x()}, joined);
    if (inputs != model().shape(x()).elements())
      throw Error("'" + weights.name + "' has " + std::to_string(inputs) + " inputs, and " +
                  std::to_string(model().shape(x()).elements()) + " come");
    fill(0, turned ? weights.values : transposed(weights));
    if (bias != nullptr)
      fill(1, *bias);
    else
      fill(1, [outputs](float* to) { std::fill_n(to, outputs, 0.0F); });
  }

  void add_batch_norm(const NodeAttributes& attributes) {
    // Before opset 14 it was set to training by having outputs for the statistics.
    const bool several = std::any_of(node_->outputs.begin() + 1, node_->outputs.end(),
                                     [](const std::string& name) { return !name.empty(); });
    if (several || attributes.number("training_mode", 0) != 0)
      throw Error("it is set to training; export the network for evaluation");
    BatchNormSpec spec = attributes.batch_norm();
    spec.relu = !relu().empty();
    add(std::make_shared<BatchNormLayer>(spec), {x()}, relu());
    for (std::size_t which = 0; which < 4; ++which)
      fill(which, constant(which + 1, Constant::Type::float32));
  }

  void add_dropout(const NodeAttributes& attributes) {
    float rate = attributes.decimal("ratio", 0.5F);
    if (has(1)) {
      const Constant& ratio = constant(1, Constant::Type::float32);
      if (ratio.elements() != 1) throw Error("its ratio has to be one number");
      ratio.values(&rate);
    }
    if (!(rate >= 0 && rate < 1)) throw Error("its ratio has to be from 0 to below 1");
    add(std::make_shared<DropoutLayer>(rate), {x()});
  }

  void add_padding(const NodeAttributes& attributes) {
    std::vector<std::int64_t> pads = attributes.numbers("pads");
    if (has(1)) pads = constant(1, Constant::Type::int64).numbers;
    float value = attributes.decimal("value", 0);
    if (has(2)) {
      const Constant& given = constant(2, Constant::Type::float32);
      if (given.elements() != 1) throw Error("its value has to be one number");
      given.values(&value);
    }
    constexpr std::size_t behind_channels = 5;
    bool known = pads.size() == 8 && value == 0 && attributes.text("mode").empty() && !has(3);
    for (std::size_t i = 0; known && i < pads.size(); ++i)
      known = pads[i] == 0 || (i == behind_channels && pads[i] > 0);
    if (!known || pads[behind_channels] > file::largest_number)
      throw Error("only zeros behind the channels are known");
    if (pads[behind_channels] == 0)
      pass();
    else
      add(std::make_shared<PadChannelsLayer>(model().shape(x()).c() + pads[behind_channels]),
          {x()});
  }

  const Graph& graph_;
  LayerNames names_;
  Imported imported_;
  Constants constants_;
  std::map<std::string, Model::Node> places_{};  ///< By the name of a tensor: what makes it.
  /// By the name of a tensor: the nodes that read it; null stands for the graph's output.
  std::map<std::string, std::vector<const Node*>> readers_{};
  const Node* node_ = nullptr;
  std::set<std::string> rows_{};    ///< Tensors that ONNX has as (N, values) and not as maps.
  std::int64_t batch_ = 0;          ///< Images that the file is for; 0: any number.
  std::set<const Node*> joined_{};  ///< Nodes that the layer before them computes, too.
};

}  // namespace

Imported network_of(const Graph& graph, bool blocks) {
  return Importer(graph, blocks).network();
}

}  // namespace duplex::models::onnx
