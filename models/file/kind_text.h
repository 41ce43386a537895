// Writes a layer as a network's file has it: the inverse of kinds.h.
#pragma once
#include <string>

#include "layers/layer.h"

namespace duplex::models::file {

/// Returns "conv 5x5/1 valid, 20 filters, relu". `of_classes`: its filters or outputs are as many
/// as there are classes. Throws Error for a layer that no file can have.
std::string kind_text(const Layer& layer, bool of_classes);

/// Returns how many filters or outputs the layer has; 0: it has none.
std::int64_t own_outputs(const Layer& layer);

}  // namespace duplex::models::file
