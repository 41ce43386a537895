// Measures what oneDNN's convolutions reach in isolation: bare primitives in the layouts that they
// like best, on warm buffers of their own. This is the ceiling that a whole network is measured
// against.
#pragma once
#include "core/operations.h"

namespace duplex {

/// The seconds of one call in each direction, the fastest of several.
struct ConvSeconds {
  double forward = 0.0, backward_data = 0.0, backward_weights = 0.0;
};

/// Repeats every primitive for about `budget` seconds. `shape` is x's, (N, C, H, W). Of the direct
/// and Winograd's algorithm, each direction counts the faster one.
ConvSeconds measure_onednn_conv(const ConvSpec& spec, const Shape& shape, int threads,
                                double budget);

/// Does the same for a linear layer. `shape` is x's, (N, C, H, W) or (N, C).
ConvSeconds measure_onednn_linear(const LinearSpec& spec, const Shape& shape, int threads,
                                  double budget);

}  // namespace duplex
