// Batch normalisation (2.9)-(2.12) in plain loops.
#pragma once
#include <memory>

#include "core/operations.h"

namespace duplex::reference {

std::unique_ptr<BatchNorm> make_batch_norm(const BatchNormSpec& spec, const TensorDesc& x);

}  // namespace duplex::reference
