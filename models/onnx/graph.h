// Holds a network as ONNX has it: a list of operations ("nodes") that name the tensors which they
// read and make. Numbers behind names are those of opset 13, which is written; others are read
// where they mean the same. https://onnx.ai/onnx/operators/
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "models/onnx/wire.h"

namespace duplex::models::onnx {

/// An attribute of a node has one of these, by its type.
struct Attribute {
  enum class Type { none = 0, decimal = 1, number = 2, text = 3, tensor = 4, numbers = 7 };
  Type type = Type::none;
  float decimal = 0;
  std::int64_t number = 0;
  std::string text{};
  std::vector<std::int64_t> numbers{};
};

Attribute decimal(float value);
Attribute number(std::int64_t value);
Attribute numbers(std::vector<std::int64_t> values);

struct Node {
  std::string name, type;
  std::vector<std::string> inputs, outputs;  ///< Names of tensors; an input that is left out is "".
  std::map<std::string, Attribute> attributes{};
};

/// A tensor that the file has: weights, or what a node is told.
struct Constant {
  enum class Type { float32 = 1, int64 = 7, other = 0 };
  std::string name;
  std::vector<std::int64_t> extents;
  Type type = Type::float32;
  std::vector<std::int64_t> numbers{};  ///< The values of int64.
  /// Writes all values of float32.
  std::function<void(float* to)> values{};

  /// Product of the extents, 1 for none; -1 where one is below zero or there are 2^40 and more.
  std::int64_t elements() const;
};

/// An input or an output of the graph. An extent that is not fixed, such as the batch, is 0.
struct Value {
  std::string name;
  std::vector<std::int64_t> extents;
};

struct Graph {
  std::string name;
  std::string about{};      ///< A few sentences for people.
  std::int64_t opset = 13;  ///< The version of the operations.
  std::vector<Node> nodes{};
  std::vector<Constant> constants{};
  std::vector<Value> inputs{}, outputs{};
};

/// Writes a file that appears whole or not at all, and takes the values of one constant after the
/// other. Throws Error where it would have 2 GiB or more, which no reader takes.
void write_graph(const std::string& path, const Graph& graph);

/// Reads the graph of a file's bytes, in which the constants' values remain. Throws Error with the
/// reason alone for what is no ONNX file and for what no network here needs: graphs within graphs,
/// weights in other files, functions.
Graph read_graph(Span file);

}  // namespace duplex::models::onnx
