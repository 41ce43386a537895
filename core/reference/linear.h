// Linear layer (2.2) in plain loops.
#pragma once
#include <memory>

#include "core/operations.h"

namespace duplex::reference {

std::unique_ptr<Linear> make_linear(const LinearSpec& spec, const TensorDesc& x);

}  // namespace duplex::reference
