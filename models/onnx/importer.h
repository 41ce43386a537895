// Makes networks of ONNX graphs.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "layers/model.h"
#include "models/onnx/graph.h"

namespace duplex::models::onnx {

/// A network with the weights that the graph has for it.
struct Imported {
  Model model;
  struct Array {
    std::string name;  ///< That of the parameter, as in a safetensors file.
    Shape shape;
    std::function<void(float* to)> values;  ///< Writes all of them.
  };
  std::vector<Array> arrays;  ///< One for each parameter, in the order of the layers.
};

/// Builds the network of a graph: convolutions, linear layers (Gemm, MatMul), pooling, LRN, batch
/// normalisation, ReLU, sigmoid, dropout, concatenation, addition, padding of channels, softmax. A
/// graph that ends without a softmax gets one, since a network here ends in a loss. A ReLU becomes
/// part of the layer before it where that is the only one that it is read by, and so does the sum
/// of a MatMul and a constant. Layers get the names of their nodes; what the name of a layer cannot
/// have becomes '_'. With `blocks`, nodes that are named "inception_3a/5x5" become layers of a
/// block. The graph must outlive the arrays. Throws Error with the reason alone, which names the
/// node, for what the program's layers do not compute.
Imported network_of(const Graph& graph, bool blocks);

}  // namespace duplex::models::onnx
