// Convolution (2.7) with bias and ReLU fused, on oneDNN.
#pragma once
#include <memory>

#include "core/onednn/context.h"
#include "core/operations.h"

namespace duplex::onednn {

/// Returns whether Winograd's algorithm may compute a convolution of an x of shape `in`: it needs
/// 3x3 windows, stride 1, no groups, and channels that fill their blocks (oneDNN 2.6 writes the
/// bias gradient's padding, which our tensors lack).
bool winograd_allowed(const ConvSpec& spec, const Shape& in);

std::unique_ptr<Conv> make_conv(const ContextPtr& context, const ConvSpec& spec,
                                const TensorDesc& x);

}  // namespace duplex::onednn
