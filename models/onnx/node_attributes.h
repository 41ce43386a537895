// Reads the attributes of a node of an ONNX graph: its window and its constants.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/operations.h"
#include "layers/kinds/geometry.h"
#include "models/onnx/graph.h"

namespace duplex::models::onnx {

/// All functions throw Error with the reason alone.
class NodeAttributes {
 public:
  explicit NodeAttributes(const Node& node) : node_(node) {}

  std::int64_t number(const std::string& name, std::int64_t otherwise) const;
  float decimal(const std::string& name, float otherwise) const;
  /// One from 0 to `most`.
  float decimal(const std::string& name, float otherwise, float most) const;
  std::vector<std::int64_t> numbers(const std::string& name) const;
  std::string text(const std::string& name) const;

  /// The window of a pooling on maps of x's shape.
  Geometry geometry(const Shape& x, bool average) const;
  /// The window of a convolution, whose weights are (filters, channels, height, width).
  Geometry geometry(const Shape& x, const Constant& weights) const;
  LrnSpec lrn() const;
  BatchNormSpec batch_norm() const;

 private:
  Geometry window(const Shape& x, std::vector<std::int64_t> kernel) const;
  const Attribute* find(const std::string& name, Attribute::Type type) const;

  const Node& node_;
};

}  // namespace duplex::models::onnx
