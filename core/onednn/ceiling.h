// What oneDNN's convolutions reach in isolation: bare primitives in the layouts they like best, on
// warm buffers of their own. The ceiling that a whole network is measured against.
#pragma once
#include "core/operations.h"

namespace duplex {

/// Seconds of one call each, the fastest of several.
struct ConvSeconds {
  double forward = 0.0, backward_data = 0.0, backward_weights = 0.0;
};

/// Repeats every primitive for about `budget` seconds. shape: x's, (N, C, H, W). Of the direct and
/// Winograd's algorithm whichever is faster in each direction.
ConvSeconds measure_onednn_conv(const ConvSpec& spec, const Shape& shape, int threads,
                                double budget);

/// A linear layer; shape: x's, (N, C, H, W) or (N, C).
ConvSeconds measure_onednn_linear(const LinearSpec& spec, const Shape& shape, int threads,
                                  double budget);

}  // namespace duplex
