// Linear layer (2.2) with bias and ReLU fused, on oneDNN.
#pragma once
#include <memory>

#include "core/onednn/context.h"
#include "core/operations.h"

namespace duplex::onednn {

std::unique_ptr<Linear> make_linear(const ContextPtr& context, const LinearSpec& spec,
                                    const TensorDesc& x);

}  // namespace duplex::onednn
