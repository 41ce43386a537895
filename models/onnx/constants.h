// The constants of a graph, by name: the weights of layers, and what a node is told.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "models/onnx/graph.h"

namespace duplex::models::onnx {

class Constants {
 public:
  /// The graph must outlive them.
  explicit Constants(const Graph& graph);

  /// Returns null where no constant has the name.
  const Constant* find(const std::string& name) const;
  /// Returns one of that type, which is float32 or int64. Throws Error where it is another.
  const Constant& get(const std::string& name, Constant::Type type) const;
  /// Gives a constant one more name.
  void alias(const std::string& name, const Constant* constant) { by_name_[name] = constant; }

 private:
  std::map<std::string, const Constant*> by_name_;
};

/// Returns an extent of a constant that has to have `rank` of them. Throws Error where it has not,
/// or where the extent is more than a network file may say.
std::int64_t extent(const Constant& constant, std::size_t axis, std::size_t rank);

/// Returns what writes the values of a matrix column by column. The constant must outlive it.
std::function<void(float* to)> transposed(const Constant& matrix);

}  // namespace duplex::models::onnx
