// Convolution (2.7) with bias and ReLU fused, on oneDNN.
#pragma once
#include <memory>

#include "core/onednn/context.h"
#include "core/operations.h"

namespace duplex::onednn {

std::unique_ptr<Conv> make_conv(const ContextPtr& context, const ConvSpec& spec,
                                const TensorDesc& x);

}  // namespace duplex::onednn
