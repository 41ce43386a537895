// How tensors of a GPU lie, behind core's opaque layouts.
#pragma once
#include "core/cudnn/view.h"
#include "core/tensor.h"

namespace duplex::cudnn {

/// A tensor in this order. Where that lies like a plain one (one channel, or a map of one element),
/// plain. Throws Error for more elements than kernels count.
TensorDesc desc_of(const Shape& shape, Order order);

/// (outputs, C * H * W) weights of a linear layer whose x lies as `x` does: each row is permuted
/// likewise, so that x need not be.
TensorDesc linear_weights(std::int64_t outputs, const TensorDesc& x);

/// Extents and order of any tensor of this device. A rank that lacks extents has 1 there.
View view_of(const TensorDesc& desc);

}  // namespace duplex::cudnn
