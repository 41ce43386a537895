// How tensors of a GPU lie, behind core's opaque layouts.
#pragma once
#include "core/cudnn/view.h"
#include "core/tensor.h"

namespace duplex::cudnn {

/// A tensor in this order and of this type. Where it lies like a plain one (float32, and one
/// channel or a map of one element, or nchw), plain. Throws Error for more elements than kernels
/// count.
TensorDesc desc_of(const Shape& shape, Order order, Type type = Type::float32);

/// (outputs, C * H * W) weights of a linear layer whose x lies as `x` does: each row is permuted
/// likewise, so that x need not be.
TensorDesc linear_weights(std::int64_t outputs, const TensorDesc& x, Type type = Type::float32);

/// Extents, order and type of any tensor of this device. A rank that lacks extents has 1 there.
View view_of(const TensorDesc& desc);

/// Likewise, but a plain tensor whose shape says less than the layout of an equal one (a matrix of
/// weights, whose rows that takes for maps) has the extents of that one.
View view_like(const TensorDesc& desc, const TensorDesc& other);

/// A plain tensor of the extents that the layout has.
TensorDesc unfolded(const TensorDesc& desc);

template <class Value>
Value* elements(const Tensor& tensor) {
  return reinterpret_cast<Value*>(tensor.data);
}

}  // namespace duplex::cudnn
