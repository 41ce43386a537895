// Reads the title and the image that an ONNX graph is for.
#pragma once
#include <string>

#include "core/shape.h"
#include "models/onnx/graph.h"

namespace duplex::models::onnx {

/// The graph's name as far as a network can have it: at most 64 printable letters of ASCII.
std::string title_of(const Graph& graph);

/// The shape of one image, (1, channels, height, width). Throws Error with the reason alone unless
/// the graph has one input, whose maps are squares of a fixed size.
Shape sample_of(const Graph& graph);

}  // namespace duplex::models::onnx
