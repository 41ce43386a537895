#include "models/onnx/importer.h"

#include <algorithm>
#include <cctype>
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
#include "models/onnx/node_attributes.h"

namespace duplex::models::onnx {
namespace {

class Importer {
 public:
  Importer(const Graph& graph, bool blocks)
      : graph_(graph),
        blocks_wanted_(blocks),
        imported_{Model(title_of(graph), sample_of(graph)), {}} {
    for (const Constant& constant : graph.constants) constants_[constant.name] = &constant;
    for (const Value& value : graph.inputs)
      if (constants_.count(value.name) == 0) places_[value.name] = model().input();
    for (const Node& node : graph.nodes)
      for (const std::string& input : node.inputs) readers_[input].push_back(&node);
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
      if (joined_.count(&node) > 0) continue;
      try {
        if (places_.count(node.outputs[0]) > 0)
          throw Error("another node makes '" + node.outputs[0] + "', too");
        add_node();
      } catch (const Error& error) {
        const std::string named = node.name.empty() ? node.outputs[0] : node.name;
        throw Error("node '" + named + "' (" + node.type + "): " + error.what());
      }
    }
    const auto end = places_.find(graph_.outputs[0].name);
    if (end == places_.end()) throw Error("no node makes its output");
    if (end->second != model().output())
      throw Error("node '" + model().entry(model().output()).name + "' leads to no output");
    if (model().output() == model().input()) throw Error("it has no layers");
    if (!model().entry(model().output()).layer->loss_kind()) {
      block("");
      model().softmax(free_name("softmax"), model().output());
    }
    return std::move(imported_);
  }

 private:
  Model& model() { return imported_.model; }

  static std::string title_of(const Graph& graph) {
    std::string title;
    for (const char letter : graph.name)
      if (letter >= ' ' && letter <= '~' && letter != '#' && title.size() < 64) title += letter;
    return title.find_first_not_of(' ') == std::string::npos ? "network" : title;
  }

  static Shape sample_of(const Graph& graph) {
    std::set<std::string> constants;
    for (const Constant& constant : graph.constants) constants.insert(constant.name);
    const Value* found = nullptr;
    for (const Value& input : graph.inputs) {
      if (constants.count(input.name) > 0) continue;  // Older files name all weights as inputs.
      if (found != nullptr) throw Error("it has several inputs; a network here has one");
      found = &input;
    }
    if (found == nullptr) throw Error("it has no input");
    const std::vector<std::int64_t>& extents = found->extents;
    const bool image =
        extents.size() == 4 && std::all_of(extents.begin() + 1, extents.end(), [](std::int64_t e) {
          return e >= 1 && e <= file::largest_window;
        });
    if (!image || extents[2] != extents[3])
      throw Error("its input '" + found->name +
                  "' has to be (N, channels, height, width) with a fixed square of at most " +
                  std::to_string(file::largest_window) + " pixels");
    return {1, extents[1], extents[2], extents[3]};
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
    const auto found = constants_.find(input(which));
    if (found == constants_.end())
      throw Error("'" + input(which) + "' has to be a constant of the file");
    if (found->second->type != type)
      throw Error("'" + input(which) + "' has to be of " +
                  (type == Constant::Type::float32 ? "float32" : "int64"));
    return *found->second;
  }

  /// Returns whether the node's output goes to a ReLU and to nothing else.
  bool relu_follows() const {
    const auto readers = readers_.find(node_->outputs[0]);
    return readers != readers_.end() && readers->second.size() == 1 &&
           readers->second[0] != nullptr && readers->second[0]->type == "Relu";
  }

  // ---- Names.
  static std::string cleaned(const std::string& name) {
    std::string result;
    for (const char letter : name)
      result += std::isalnum(static_cast<unsigned char>(letter)) != 0 && (letter & 0x80) == 0
                    ? letter
                    : '_';
    constexpr std::size_t longest = 56;
    result = result.substr(0, longest);
    static const std::set<std::string> others{"network", "known", "input", "classes", "block",
                                              "repeat",  "end",   "start", "from",    "training"};
    if (result.empty() || others.count(result) > 0) result += "_";
    return result;
  }

  /// Returns the name, with a number behind it where a layer has it already.
  std::string free_name(const std::string& name) {
    std::string free = name;
    for (int number = 2; !names_.insert(block_ + "/" + free).second; ++number)
      free = name + "_" + std::to_string(number);
    return free;
  }

  void block(const std::string& name) {
    block_ = name;
    model().block(name);
    if (!name.empty() && blocks_.insert(name).second) names_.insert("/" + name);
  }

  /// Returns the layer's name. One such as "inception_3a/5x5" lies in a block, as long as the block
  /// goes on.
  std::string layer_name() {
    std::string name = node_->name.empty() ? node_->type : node_->name;
    const auto slash = name.find('/');
    const std::string first = slash == std::string::npos ? "" : cleaned(name.substr(0, slash));
    const bool in_block = blocks_wanted_ && slash != std::string::npos && slash > 0 &&
                          slash + 1 < name.size() &&
                          name.find('/', slash + 1) == std::string::npos &&
                          (first == block_ || names_.count("/" + first) == 0);
    block(in_block ? first : "");
    return free_name(cleaned(in_block ? name.substr(slash + 1) : name));
  }

  // ---- Layers.
  void add(std::shared_ptr<const Layer> layer, std::vector<Model::Node> inputs, bool relu = false) {
    const Model::Node made = model().layer(layer_name(), std::move(layer), std::move(inputs));
    if (static_cast<double>(model().shape(made).elements()) > file::most_values)
      throw Error("its output would have more than 2^31 values for an image");
    places_[node_->outputs[0]] = made;
    if (!relu) return;
    const Node* follower = readers_.at(node_->outputs[0])[0];
    if (!places_.emplace(follower->outputs[0], made).second)
      throw Error("another node makes '" + follower->outputs[0] + "', too");
    joined_.insert(follower);
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

  std::int64_t extent(const Constant& constant, std::size_t axis, std::size_t rank) const {
    if (constant.extents.size() != rank || constant.extents[axis] < 1 ||
        constant.extents[axis] > file::largest_number)
      throw Error("'" + constant.name + "' has to have " + std::to_string(rank) +
                  " extents, of at most " + std::to_string(file::largest_number));
    return constant.extents[axis];
  }

  void add_node() {
    const std::string& type = node_->type;
    const NodeAttributes attributes(*node_);
    if (type == "Conv") {
      add_conv(attributes);
    } else if (type == "Gemm") {
      add_linear(attributes);
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
      if (inputs.size() < 2 || inputs.size() > file::most_inputs)
        throw Error("it has to have 2 to " + std::to_string(file::most_inputs) + " inputs");
      add(std::make_shared<ConcatLayer>(), inputs);
    } else if (type == "Add") {
      if (node_->inputs.size() != 2) throw Error("it has to have two inputs");
      const bool relu = relu_follows();
      add(std::make_shared<AddLayer>(relu), {x(0), x(1)}, relu);
    } else if (type == "Pad") {
      add_padding(attributes);
    } else if (type == "Softmax" || type == "LogSoftmax") {
      const std::int64_t axis = attributes.number("axis", 1);
      if (axis != 1 && axis != -1) throw Error("only axis 1, the classes, is known");
      add(std::make_shared<LossLayer>(LossKind::softmax_cross_entropy, 1.0F), {x()});
    } else if (type == "Flatten") {
      if (attributes.number("axis", 1) != 1) throw Error("only axis 1 is known");
      pass();
    } else if (type == "Reshape") {
      const Constant& to = constant(1, Constant::Type::int64);
      const std::int64_t all = model().shape(x()).elements();
      const std::vector<std::int64_t>& extents = to.numbers;
      if (extents.size() != 2 || (extents[1] != -1 && extents[1] != all))
        throw Error("only the shape (N, " + std::to_string(all) + ") of all values is known");
      pass();
    } else if (type == "Identity") {
      const auto constant = constants_.find(input(0));
      if (constant != constants_.end())  // PyTorch writes weights that are alike only once.
        constants_[node_->outputs[0]] = constant->second;
      else
        pass();
    } else {
      throw Error("the program has no such layer (docs/onnx.md lists those that it has)");
    }
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
    options.relu = relu_follows();
    const std::int64_t filters = extent(weights, 0, 4);
    const Geometry geometry = attributes.geometry(model().shape(x()), weights);
    if (options.groups < 1 || options.groups > file::largest_number)
      throw Error("group has to be 1 or more");
    add(std::make_shared<ConvLayer>(filters, geometry, options), {x()}, options.relu);
    fill(0, weights);
    if (options.bias) fill(1, constant(2, Constant::Type::float32));
  }

  void add_linear(const NodeAttributes& attributes) {
    const Constant& weights = constant(1, Constant::Type::float32);
    if (attributes.decimal("alpha", 1) != 1 || attributes.decimal("beta", 1) != 1 ||
        attributes.number("transA", 0) != 0)
      throw Error("only alpha 1, beta 1 and transA 0 are known");
    const bool usual = attributes.number("transB", 0) == 1;
    const std::int64_t outputs = extent(weights, usual ? 0 : 1, 2);
    const std::int64_t inputs = weights.extents[usual ? 1 : 0];
    const bool relu = relu_follows();
    add(std::make_shared<LinearLayer>(outputs, relu), {x()}, relu);
    if (usual) {
      fill(0, weights);
    } else {
      if (inputs != model().shape(x()).elements())
        throw Error("'" + weights.name + "' has " + std::to_string(inputs) + " inputs, and " +
                    std::to_string(model().shape(x()).elements()) + " come");
      fill(0, [&weights, outputs, inputs](float* to) {
        std::vector<float> turned(static_cast<std::size_t>(outputs * inputs));
        weights.values(turned.data());
        for (std::int64_t i = 0; i < inputs; ++i)
          for (std::int64_t o = 0; o < outputs; ++o)
            to[o * inputs + i] = turned[static_cast<std::size_t>(i * outputs + o)];
      });
    }
    if (has(2))
      fill(1, constant(2, Constant::Type::float32));
    else
      fill(1, [outputs](float* to) { std::fill_n(to, outputs, 0.0F); });
  }

  void add_batch_norm(const NodeAttributes& attributes) {
    if (node_->outputs.size() > 1 && attributes.number("training_mode", 0) != 0)
      throw Error("it is set to training; export the network for evaluation");
    BatchNormSpec spec = attributes.batch_norm();
    spec.relu = relu_follows();
    add(std::make_shared<BatchNormLayer>(spec), {x()}, spec.relu);
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
    const bool channels_only =
        pads.size() == 8 && std::count(pads.begin(), pads.end(), 0) >= 7 && pads[5] >= 0;
    if (!channels_only || pads[5] > file::largest_number || attributes.text("mode") != "" || has(2))
      throw Error("only zeros behind the channels are known");
    if (pads[5] == 0) {
      pass();
      return;
    }
    add(std::make_shared<PadChannelsLayer>(model().shape(x()).c() + pads[5]), {x()});
  }

  const Graph& graph_;
  const bool blocks_wanted_;
  Imported imported_;
  std::map<std::string, const Constant*> constants_{};
  std::map<std::string, Model::Node> places_{};  ///< By the name of a tensor: what makes it.
  /// By the name of a tensor: the nodes that read it; null stands for the graph's output.
  std::map<std::string, std::vector<const Node*>> readers_{};
  const Node* node_ = nullptr;
  std::set<const Node*> joined_{};  ///< ReLUs that the layer before them computes.
  std::set<std::string> names_{};   ///< "BLOCK/NAME"; "/NAME" of blocks and of other layers.
  std::set<std::string> blocks_{};
  std::string block_{};
};

}  // namespace

Imported network_of(const Graph& graph, bool blocks) {
  return Importer(graph, blocks).network();
}

}  // namespace duplex::models::onnx
