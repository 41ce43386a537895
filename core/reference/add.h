// Addition of two tensors, and the sum of gradients, in plain loops.
#pragma once
#include <memory>

#include "core/operations.h"

namespace duplex::reference {

std::unique_ptr<Add> make_add(bool relu, const TensorDesc& a, const TensorDesc& b);
std::unique_ptr<GradientSum> make_gradient_sum(const TensorDesc& y);

}  // namespace duplex::reference
