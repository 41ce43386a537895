// Names of layers, made of the names of an ONNX graph's nodes.
#pragma once
#include <set>
#include <string>

namespace duplex::models::onnx {

class LayerNames {
 public:
  /// `block` is empty where the layer lies in none.
  struct Name {
    std::string block, layer;
  };

  /// With `blocks`, a node such as "inception_3a/5x5" becomes a layer of a block, as long as that
  /// block goes on.
  explicit LayerNames(bool blocks) : blocks_wanted_(blocks) {}

  /// Returns the name of the next node's layer: that of the node, in which '_' stands for what a
  /// layer's name cannot have, with a number behind it where a layer has it already.
  Name of(const std::string& node);
  /// Returns a name outside all blocks for a layer that no node stands for.
  Name own(const std::string& name);

 private:
  std::string free_name(const std::string& name);
  void begin(const std::string& block);

  const bool blocks_wanted_;
  std::set<std::string> names_{};  ///< "BLOCK/NAME"; "/NAME" of blocks and of other layers.
  std::set<std::string> blocks_{};
  std::string block_{};
};

}  // namespace duplex::models::onnx
