// Softmax (2.13) with cross-entropy, and squared error (3.1), in plain loops.
#pragma once
#include <memory>

#include "core/operations.h"

namespace duplex::reference {

std::unique_ptr<Loss> make_loss(const LossSpec& spec, const TensorDesc& x);

}  // namespace duplex::reference
