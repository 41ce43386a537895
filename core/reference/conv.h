// Convolution (2.7) in plain loops.
#pragma once
#include <memory>

#include "core/operations.h"

namespace duplex::reference {

std::unique_ptr<Conv> make_conv(const ConvSpec& spec, const TensorDesc& x);

}  // namespace duplex::reference
