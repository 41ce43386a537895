#include "models/onnx/exporter.h"

#include <set>
#include <utility>

#include "core/error.h"
#include "layers/kinds/activation.h"
#include "layers/kinds/conv.h"
#include "layers/kinds/join.h"
#include "layers/kinds/linear.h"
#include "layers/kinds/loss.h"
#include "layers/kinds/normalisation.h"
#include "layers/kinds/pool.h"

namespace duplex::models::onnx {

Attribute decimal(float value) {
  Attribute attribute;
  attribute.type = Attribute::Type::decimal;
  attribute.decimal = value;
  return attribute;
}

Attribute number(std::int64_t value) {
  Attribute attribute;
  attribute.type = Attribute::Type::number;
  attribute.number = value;
  return attribute;
}

Attribute numbers(std::vector<std::int64_t> values) {
  Attribute attribute;
  attribute.type = Attribute::Type::numbers;
  attribute.numbers = std::move(values);
  return attribute;
}

namespace {

using Attributes = std::map<std::string, Attribute>;

Attributes of_window(const Window& window) {
  return {{"kernel_shape", numbers({window.height, window.width})},
          {"strides", numbers({window.stride_y, window.stride_x})},
          {"pads", numbers({window.padding.top, window.padding.left, window.padding.bottom,
                            window.padding.right})}};
}

class Exporter {
 public:
  Exporter(const Model& model, ParameterValues values)
      : model_(model), values_(std::move(values)), names_(model.nodes().size()) {
    const Shape& sample = model.entry(0).shape;
    graph_.name = model.title();
    names_[0] = "images";
    graph_.inputs.push_back({names_[0], {0, sample.c(), sample.h(), sample.w()}});
  }

  Graph graph() {
    for (std::size_t i = 1; i < model_.nodes().size(); ++i) {
      entry_ = &model_.nodes()[i];
      if (entry_->training_only) continue;
      names_[i] = entry_->name;
      // The file's input and output have these names, which a layer may have, too.
      static const std::set<std::string> taken{"images", "probabilities", "values"};
      if (taken.count(names_[i]) > 0) names_[i] += "/out";
      add_constants();
      add_layer();
      graph_.nodes.back().outputs = {names_[i]};
    }
    const bool squared = entry_->layer->loss_kind() == LossKind::squared_error;
    const std::string output = squared ? "values" : "probabilities";
    graph_.nodes.back().outputs = {output};
    graph_.outputs.push_back({output, {0, model_.classes()}});
    return std::move(graph_);
  }

 private:
  const std::string& input(std::size_t which = 0) const {
    return names_[static_cast<std::size_t>(entry_->inputs[which])];
  }
  const Shape& shape() const { return model_.shape(entry_->inputs[0]); }

  void add_constants() {
    for (const ParameterSpec& spec : model_.parameters(*entry_)) {
      Constant constant;
      constant.name = spec.name;
      for (int axis = 0; axis < spec.shape.rank(); ++axis)
        constant.extents.push_back(spec.shape[axis]);
      constant.values = [spec, values = values_](float* to) { values(spec, to); };
      graph_.constants.push_back(std::move(constant));
    }
  }

  /// Adds a constant of this layer that is no parameter.
  std::string add_constant(Constant constant) {
    constant.name = entry_->name + "." + constant.name;
    graph_.constants.push_back(std::move(constant));
    return graph_.constants.back().name;
  }

  void add_node(const std::string& name, const std::string& type,
                const std::vector<std::string>& inputs, Attributes attributes = {}) {
    graph_.nodes.push_back({name, type, inputs, {name}, std::move(attributes)});
  }

  /// Adds a node of the layer's name, and a ReLU behind it where there is one. Others read the last
  /// of the two, which has the layer's name as that of its output.
  void add_node(const std::string& type, const std::vector<std::string>& inputs,
                Attributes attributes, bool relu) {
    add_node(entry_->name, type, inputs, std::move(attributes));
    if (!relu) return;
    graph_.nodes.back().outputs = {entry_->name + "/sum"};
    graph_.nodes.push_back(
        {entry_->name + "/relu", "Relu", {entry_->name + "/sum"}, {entry_->name}});
  }

  /// Returns the layer's input as (N, values).
  std::string flat() {
    if (shape().rank() == 2) return input();
    add_node(entry_->name + "/flat", "Flatten", {input()}, {{"axis", number(1)}});
    return entry_->name + "/flat";
  }

  std::string parameter(const std::string& name) const { return entry_->name + "." + name; }

  void add_layer() {
    const Layer& layer = *entry_->layer;
    if (const auto* conv = dynamic_cast<const ConvLayer*>(&layer)) {
      Attributes attributes = of_window(conv->spec(shape()).window);
      attributes["group"] = number(conv->options().groups);
      std::vector<std::string> inputs{input(), parameter("weight")};
      if (conv->options().bias) inputs.push_back(parameter("bias"));
      add_node("Conv", inputs, attributes, conv->options().relu);
    } else if (const auto* linear = dynamic_cast<const LinearLayer*>(&layer)) {
      const std::string x = flat();
      add_node("Gemm", {x, parameter("weight"), parameter("bias")}, {{"transB", number(1)}},
               linear->spec().relu);
    } else if (const auto* pool = dynamic_cast<const PoolLayer*>(&layer)) {
      add_pool(*pool);
    } else if (const auto* lrn = dynamic_cast<const LrnLayer*>(&layer)) {
      const LrnSpec& spec = lrn->spec();
      add_node(entry_->name, "LRN", {input()},
               {{"size", number(spec.size)},
                {"alpha", decimal(spec.alpha)},
                {"beta", decimal(spec.beta)},
                {"bias", decimal(spec.k)}});
    } else if (const auto* norm = dynamic_cast<const BatchNormLayer*>(&layer)) {
      // ONNX counts the part of the running statistics that stays.
      add_node("BatchNormalization",
               {input(), parameter("weight"), parameter("bias"), parameter("running_mean"),
                parameter("running_var")},
               {{"epsilon", decimal(norm->spec().epsilon)},
                {"momentum", decimal(1.0F - norm->spec().momentum)}},
               norm->spec().relu);
    } else if (const auto* activation = dynamic_cast<const ActivationLayer*>(&layer)) {
      add_node(entry_->name, activation->type() == "relu" ? "Relu" : "Sigmoid", {input()});
    } else if (const auto* dropout = dynamic_cast<const DropoutLayer*>(&layer)) {
      Constant ratio;
      ratio.name = "ratio";
      ratio.values = [rate = dropout->rate()](float* to) { *to = rate; };
      add_node(entry_->name, "Dropout", {input(), add_constant(std::move(ratio))});
    } else if (dynamic_cast<const ConcatLayer*>(&layer) != nullptr) {
      std::vector<std::string> inputs;
      for (std::size_t i = 0; i < entry_->inputs.size(); ++i) inputs.push_back(input(i));
      add_node(entry_->name, "Concat", inputs, {{"axis", number(1)}});
    } else if (const auto* add = dynamic_cast<const AddLayer*>(&layer)) {
      add_node("Add", {input(0), input(1)}, {}, add->relu());
    } else if (const auto* pad = dynamic_cast<const PadChannelsLayer*>(&layer)) {
      Constant pads;
      pads.name = "pads";
      pads.type = Constant::Type::int64;
      pads.extents = {8};
      pads.numbers = {0, 0, 0, 0, 0, pad->channels() - shape().c(), 0, 0};
      add_node(entry_->name, "Pad", {input(), add_constant(std::move(pads))});
    } else if (layer.loss_kind()) {
      const std::string x = flat();
      const bool softmax = layer.loss_kind() == LossKind::softmax_cross_entropy;
      add_node(entry_->name, softmax ? "Softmax" : "Identity", {x},
               softmax ? Attributes{{"axis", number(1)}} : Attributes{});
    } else {
      throw Error(model_.title() + ": ONNX has no layer '" + layer.type() + "' (" + entry_->name +
                  ")");
    }
  }

  void add_pool(const PoolLayer& pool) {
    const std::string kind = pool.type() == "max pool" ? "Max" : "Average";
    const Geometry& geometry = pool.geometry_as_given();
    if (geometry.mode == Geometry::Mode::whole)
      add_node(entry_->name, "Global" + kind + "Pool", {input()});
    else  // Padding does not count in an average, as ONNX has it where it is not told otherwise.
      add_node(entry_->name, kind + "Pool", {input()}, of_window(geometry.window(shape())));
  }

  const Model& model_;
  const ParameterValues values_;
  std::vector<std::string> names_;  ///< By node: what its output is called.
  const Model::Entry* entry_ = nullptr;
  Graph graph_{};
};

}  // namespace

Graph graph_of(const Model& model, ParameterValues values) {
  return Exporter(model, std::move(values)).graph();
}

}  // namespace duplex::models::onnx
