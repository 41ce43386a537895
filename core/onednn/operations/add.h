// Addition of two tensors, and the sum of gradients with ReLU's mask: our own kernels make one pass
// each.
#pragma once
#include <memory>

#include "core/onednn/context.h"
#include "core/operations.h"

namespace duplex::onednn {

std::unique_ptr<Add> make_add(const ContextPtr& context, bool relu, const TensorDesc& a,
                              const TensorDesc& b);
std::unique_ptr<GradientSum> make_gradient_sum(const ContextPtr& context, const TensorDesc& y);

}  // namespace duplex::onednn
