#include "layers/model.h"

#include "core/error.h"
#include "layers/kinds/activation.h"
#include "layers/kinds/join.h"
#include "layers/kinds/linear.h"
#include "layers/kinds/loss.h"
#include "layers/kinds/normalisation.h"
#include "layers/kinds/pool.h"

namespace duplex {

Model::Model(std::string title, const Shape& sample) : title_(std::move(title)) {
  nodes_.push_back({"input", "input", nullptr, {}, sample, false});
}

Model::Node Model::layer(const std::string& name, std::shared_ptr<const Layer> layer,
                         std::vector<Node> inputs, PartOf part) {
  Entry entry;
  entry.part = std::move(part);
  entry.name = block_.empty() ? name : block_ + "/" + name;
  entry.block = block_.empty() ? name : block_;
  entry.layer = std::move(layer);
  entry.inputs = std::move(inputs);
  entry.training_only = training_only_;
  for (const Entry& other : nodes_) {
    if (other.name == entry.name) throw Error(title_ + ": two layers are named " + entry.name);
  }
  try {
    entry.shape = entry.layer->output(input_shapes(entry));
  } catch (const Error& error) {
    throw Error(title_ + ", layer " + entry.name + ": " + error.what(), error.code);
  }
  nodes_.push_back(std::move(entry));
  return output();
}

Model::Node Model::conv(const std::string& name, Node x, std::int64_t filters, Geometry geometry,
                        ConvLayer::Options options) {
  return layer(name, std::make_shared<ConvLayer>(filters, geometry, options), {x});
}
Model::Node Model::linear(const std::string& name, Node x, std::int64_t outputs, bool relu) {
  return layer(name, std::make_shared<LinearLayer>(outputs, relu), {x});
}
Model::Node Model::max_pool(const std::string& name, Node x, Geometry geometry) {
  return layer(name, std::make_shared<PoolLayer>(PoolKind::max, geometry), {x});
}
Model::Node Model::average_pool(const std::string& name, Node x, Geometry geometry) {
  return layer(name, std::make_shared<PoolLayer>(PoolKind::average, geometry), {x});
}
Model::Node Model::lrn(const std::string& name, Node x, LrnSpec spec) {
  return layer(name, std::make_shared<LrnLayer>(spec), {x});
}
Model::Node Model::batch_norm(const std::string& name, Node x, bool relu) {
  BatchNormSpec spec;
  spec.relu = relu;
  return layer(name, std::make_shared<BatchNormLayer>(spec), {x});
}
Model::Node Model::relu(const std::string& name, Node x) {
  return layer(name, std::make_shared<ActivationLayer>(ActivationKind::relu), {x});
}
Model::Node Model::sigmoid(const std::string& name, Node x) {
  return layer(name, std::make_shared<ActivationLayer>(ActivationKind::sigmoid), {x});
}
Model::Node Model::dropout(const std::string& name, Node x, float rate) {
  return layer(name, std::make_shared<DropoutLayer>(rate), {x});
}
Model::Node Model::concat(const std::string& name, const std::vector<Node>& x) {
  return layer(name, std::make_shared<ConcatLayer>(), x);
}
Model::Node Model::add(const std::string& name, Node a, Node b, bool relu) {
  return layer(name, std::make_shared<AddLayer>(relu), {a, b});
}
Model::Node Model::pad_channels(const std::string& name, Node x, std::int64_t channels) {
  return layer(name, std::make_shared<PadChannelsLayer>(channels), {x});
}
Model::Node Model::softmax(const std::string& name, Node x, float weight) {
  return layer(name, std::make_shared<LossLayer>(LossKind::softmax_cross_entropy, weight), {x});
}
Model::Node Model::squared_error(const std::string& name, Node x, float weight) {
  return layer(name, std::make_shared<LossLayer>(LossKind::squared_error, weight), {x});
}

std::vector<Shape> Model::input_shapes(const Entry& entry) const {
  std::vector<Shape> shapes;
  for (Node input : entry.inputs) shapes.push_back(shape(input));
  return shapes;
}

std::vector<ParameterSpec> Model::parameters(const Entry& entry) const {
  if (!entry.layer) return {};
  std::vector<ParameterSpec> specs = entry.layer->parameters(input_shapes(entry));
  for (ParameterSpec& spec : specs) {
    if (!entry.part.layer.empty()) {
      spec.rows.parameter = entry.part.layer + "." + spec.name;
      spec.rows.first = entry.part.first_channel * (spec.shape.elements() / spec.shape[0]);
    }
    spec.name = entry.name + "." + spec.name;
  }
  return specs;
}

std::vector<ParameterSpec> Model::trained() const {
  std::vector<ParameterSpec> trained;
  for (const Entry& entry : nodes_) {
    for (ParameterSpec& spec : parameters(entry)) {
      if (spec.trained) trained.push_back(std::move(spec));
    }
  }
  return trained;
}

std::vector<Model::Linear> Model::linear_layers() const {
  std::vector<Linear> found;
  std::size_t next = 0;
  for (std::size_t node = 0; node < nodes_.size(); ++node) {
    if (!nodes_[node].layer) continue;
    const std::vector<ParameterSpec> own = parameters(nodes_[node]);
    if (dynamic_cast<const LinearLayer*>(nodes_[node].layer.get()) != nullptr)
      found.push_back({node, next, next + 1, static_cast<std::size_t>(own[0].shape[0]),
                       static_cast<std::size_t>(own[0].shape[1])});
    for (const ParameterSpec& spec : own) next += spec.trained ? 1 : 0;
  }
  return found;
}

std::int64_t Model::trained_parameters() const {
  std::int64_t count = 0;
  for (const ParameterSpec& spec : trained()) count += spec.shape.elements();
  return count;
}

std::int64_t Model::macs() const {
  std::int64_t count = 0;
  for (const Entry& entry : nodes_) {
    if (entry.layer && !entry.training_only) count += entry.layer->macs(input_shapes(entry));
  }
  return count;
}

}  // namespace duplex
