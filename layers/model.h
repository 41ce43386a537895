// Defines a model: a graph of layers, in an order in which every layer follows its inputs. A model
// knows shapes, parameters and costs, but no device. models/ builds one for each network.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "layers/kinds/conv.h"
#include "layers/kinds/geometry.h"
#include "layers/layer.h"

namespace duplex {

/// A batch has at most so many images: with them, the sizes of one layer fit into 63 bits.
constexpr std::int64_t most_images = std::int64_t{1} << 24;

class Model {
 public:
  /// Names a layer's output as an input of later layers: the layer's number in nodes().
  using Node = int;

  struct Entry {
    std::string name;   ///< "conv1_1"; inside a block "inception_3a/5x5".
    std::string block;  ///< Row of the thesis's table that it belongs to: "inception_3a", or the
                        ///< name itself.
    std::shared_ptr<const Layer> layer;  ///< Null for the input.
    std::vector<Node> inputs;
    Shape shape;                 ///< Shape of the output for one sample (N = 1).
    bool training_only = false;  ///< Set for auxiliary classifiers, which only training runs.
    PartOf part = {};            ///< Of a network that is cut.
  };

  /// `title` is the network's name as the thesis prints it; `sample` is (1, C, H, W).
  Model(std::string title, const Shape& sample);

  Node input() const { return 0; }

  // Each builder adds one layer and returns its output. Names are unique; in a block, the block's
  // name comes before the layer's.
  Node conv(const std::string& name, Node x, std::int64_t filters, Geometry geometry,
            ConvLayer::Options options = {});
  Node linear(const std::string& name, Node x, std::int64_t outputs, bool relu);
  Node max_pool(const std::string& name, Node x, Geometry geometry);
  Node average_pool(const std::string& name, Node x, Geometry geometry);
  Node lrn(const std::string& name, Node x, LrnSpec spec = {});
  Node batch_norm(const std::string& name, Node x, bool relu);
  Node relu(const std::string& name, Node x);
  Node sigmoid(const std::string& name, Node x);
  Node dropout(const std::string& name, Node x, float rate);
  Node concat(const std::string& name, const std::vector<Node>& x);
  Node add(const std::string& name, Node a, Node b, bool relu);
  Node pad_channels(const std::string& name, Node x, std::int64_t channels);
  /// Adds softmax with cross-entropy, whose loss counts `weight` times in the sum. The last one is
  /// the network's output.
  Node softmax(const std::string& name, Node x, float weight = 1.0F);
  Node squared_error(const std::string& name, Node x, float weight = 1.0F);
  /// Adds any other layer, such as a student's own.
  Node layer(const std::string& name, std::shared_ptr<const Layer> layer, std::vector<Node> inputs,
             PartOf part = {});

  /// Layers added from here on belong to a block, until the next call; "" ends it.
  void block(const std::string& name) { block_ = name; }
  /// Layers added from here on run in training only, until switched off.
  void training_only(bool on) { training_only_ = on; }

  /// Training smooths the labels of all losses (LossSpec); 0: of none.
  void smooth_labels(float smoothing) { label_smoothing_ = smoothing; }
  float label_smoothing() const { return label_smoothing_; }

  const std::string& title() const { return title_; }
  /// The name by which others know the network, where that differs; empty: it does not.
  const std::string& known_as() const { return known_as_; }
  void known_as(std::string name) { known_as_ = std::move(name); }
  const std::vector<Entry>& nodes() const { return nodes_; }
  const Shape& shape(Node node) const { return entry(node).shape; }
  const Entry& entry(Node node) const { return nodes_[static_cast<std::size_t>(node)]; }
  Node output() const { return static_cast<Node>(nodes_.size()) - 1; }
  std::int64_t classes() const { return nodes_.back().shape.c(); }

  std::vector<Shape> input_shapes(const Entry& entry) const;
  /// Returns the entry's parameters under their full names: "conv1_1.weight".
  std::vector<ParameterSpec> parameters(const Entry& entry) const;
  /// Returns the trained parameters of all layers in forward order, as they cross the wire.
  std::vector<ParameterSpec> trained() const;
  /// A linear layer: its number among the nodes, the numbers of its weights and its bias in
  /// trained(), and the extents of the weights.
  struct Linear {
    std::size_t node = 0, weights = 0, bias = 0;
    std::size_t outputs = 0, inputs = 0;
  };
  /// Returns the linear layers in forward order.
  std::vector<Linear> linear_layers() const;
  std::int64_t trained_parameters() const;  ///< Number of elements in trained().
  /// Returns the multiply-adds of one sample's forward, without layers that only training runs.
  std::int64_t macs() const;

 private:
  std::string title_, known_as_;
  std::string block_;
  bool training_only_ = false;
  float label_smoothing_ = 0.0F;
  std::vector<Entry> nodes_;
};

}  // namespace duplex
