// Says how tensors of a GPU lie, behind core's opaque layouts.
#pragma once
#include <cstddef>
#include <cstdint>

#include "core/cudnn/kernels/view.h"
#include "core/operations.h"
#include "core/tensor.h"

namespace duplex::cudnn {

/// Returns the description of a tensor in this order and of this type. It is plain where the tensor
/// lies like a plain one (float32, and one channel or a map of one element, or nchw). Throws Error
/// for more elements than kernels count.
TensorDesc desc_of(const Shape& shape, Order order, Type type = Type::float32);

/// Returns the description of the (outputs, C * H * W) weights of a linear layer. Each row is
/// permuted as the layout of `x` is, so that x need not be.
TensorDesc linear_weights(std::int64_t outputs, const TensorDesc& x, Type type = Type::float32);

/// Returns extents, order and type of any tensor of this device. Extents that a lower rank lacks
/// are 1.
View view_of(const TensorDesc& desc);

/// Does the same, but a plain tensor takes the extents of `other`, a tensor of equal shape, where
/// the layout of that one knows more: a matrix of weights, whose rows the layout takes for maps.
View view_like(const TensorDesc& desc, const TensorDesc& other);

/// Returns the description of a plain tensor with the extents that the layout has.
TensorDesc plain_desc_of(const TensorDesc& desc);

/// A piece is some samples of a tensor, or some rows of weights.
struct Piece {
  Tensor stored;          ///< A part of the tensor's own memory.
  TensorDesc plain;       ///< The same elements as the host has them.
  std::size_t begin = 0;  ///< Number of the tensor's elements before it.
};

/// Returns the piece of a tensor from sample `first` on. A plain tensor is one piece.
Piece piece_from(const Tensor& tensor, std::uint32_t first);
/// Calls each(piece) for all pieces of a tensor, in order. A copy to or from the host needs memory
/// for one piece in between where the tensor is not plain.
template <class Each>
void for_each_piece(const Tensor& tensor, Each&& each) {
  const std::uint32_t samples = view_of(tensor.desc).n;
  std::uint32_t done = 0;
  do {
    Piece piece = piece_from(tensor, done);
    each(piece);
    done += view_of(piece.stored.desc).n;
  } while (done < samples);
}
/// Returns the bytes of the largest piece on the host.
std::size_t piece_bytes(const TensorDesc& desc);

/// Returns the bytes that an engine of cuDNN may take beside the tensors, on a GPU of so much
/// memory. In NCHW, engines that use tensor cores need room for x and y in another order: more than
/// a GiB for VGG's first ones at batch 64.
std::size_t workspace_limit(std::size_t gpu_bytes);

/// Returns whether opposite sides of a map are padded alike.
bool is_even(const Padding& padding);

/// Returns the shape of a convolution's x with its padding. x is copied into such a frame of zeros
/// where no padding is left to cuDNN.
Shape framed_shape(const ConvSpec& spec, const Shape& x);

template <class Value>
Value* elements(const Tensor& tensor) {
  return reinterpret_cast<Value*>(tensor.data);
}

}  // namespace duplex::cudnn
