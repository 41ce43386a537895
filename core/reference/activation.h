// ReLU (2.3) and sigmoid (2.4) in plain loops.
#pragma once
#include <memory>

#include "core/operations.h"

namespace duplex::reference {

std::unique_ptr<Activation> make_activation(ActivationKind kind, const TensorDesc& x);

}  // namespace duplex::reference
