// Addition of two tensors, and the sum of gradients, on a GPU.
#pragma once
#include <memory>

#include "core/cudnn/context.h"
#include "core/operations.h"

namespace duplex::cudnn {

std::unique_ptr<Add> make_add(const ContextPtr& context, bool relu, const TensorDesc& a,
                              const TensorDesc& b);
std::unique_ptr<GradientSum> make_gradient_sum(const ContextPtr& context, const TensorDesc& y);

}  // namespace duplex::cudnn
