// Makes ONNX graphs of networks.
#pragma once
#include <functional>

#include "layers/model.h"
#include "models/onnx/graph.h"

namespace duplex::models::onnx {

/// Writes the values of a parameter, in the order of its shape.
using ParameterValues = std::function<void(const ParameterSpec& spec, float* values)>;

/// Returns the graph of a network's forward on images of any number, (N, C, H, W), without what
/// only training runs. Its input is "images"; its output "probabilities", (N, classes), or "values"
/// where the loss is the squared error. Nodes have the names of their layers, weights those that
/// they have in a safetensors file. `values` is called while the graph is written. Throws Error for
/// a kind of layer that ONNX does not have.
Graph graph_of(const Model& model, ParameterValues values);

}  // namespace duplex::models::onnx
