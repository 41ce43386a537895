// Gives a replay gradients that are no zeros, for codings whose bytes depend on the values.
#pragma once
#include <vector>

#include "core/exchange.h"
#include "core/optimiser.h"

namespace duplex::tools {

/// Overwrites the gradients: they are drawn from normal distributions, the same on all ranks, which
/// are so wide that an update of SGD, once momentum has gathered, is about a 1,400th of a weight.
/// Packed without loss, weights and gradients then come to about the parts of float32's bytes that
/// those of a training of Resnet34 do (docs/training.md, Fewer bytes). Adam's updates are as large
/// as its learning rate says, whatever the gradients are.
void draw_gradients(const std::vector<Span>& spans, const OptimiserSpec& optimiser, double rate);

}  // namespace duplex::tools
