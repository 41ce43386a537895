// Tensors that a call needs in another layout or type than it gets them in.
#pragma once
#include "core/cudnn/context.h"
#include "core/cudnn/kernels.h"
#include "core/cudnn/layout.h"

namespace duplex::cudnn {

/// Room in the context's staging memory for what an operation stages in one call; handed out in
/// turn.
class Staging {
 public:
  /// Makes room for one more of a description. Where it begins.
  std::size_t add(const TensorDesc& desc) {
    constexpr std::size_t alignment = 256;
    const std::size_t begin = bytes_;
    bytes_ += (desc.bytes + alignment - 1) / alignment * alignment;
    return begin;
  }
  void reserve(Context& context) const { context.reserve_staging(bytes_); }

 private:
  std::size_t bytes_ = 0;
};

/// A tensor that engines want in one description and callers have in another.
class Staged {
 public:
  Staged() = default;
  Staged(const TensorDesc& wanted, const TensorDesc& had, Staging& staging)
      : wanted_(wanted), needed_(!same_storage(wanted, had)) {
    if (needed_) offset_ = staging.add(wanted_);
  }

  /// The memory to write to in the place of `tensor`.
  Tensor room(const Context& context, const Tensor& tensor) const {
    if (!needed_) return tensor;
    return {wanted_, reinterpret_cast<float*>(context.staging() + offset_)};
  }
  /// `tensor` as it is wanted; its map begins at row `down`, column `right` of what is wanted.
  Tensor read(const Context& context, const Tensor& tensor, std::int32_t down = 0,
              std::int32_t right = 0) const {
    Tensor staged = room(context, tensor);
    if (needed_) move(context, staged, tensor, down, right);
    return staged;
  }
  /// The way back, from room(tensor).
  void write(const Context& context, Tensor& tensor, std::int32_t down = 0,
             std::int32_t right = 0) const {
    if (needed_) move(context, tensor, room(context, tensor), -down, -right);
  }

 private:
  static void move(const Context& context, Tensor& to, const Tensor& from, std::int32_t down,
                   std::int32_t right) {
    if (to.shape() == from.shape()) {
      convert(context, to, from);
    } else {
      move_map(context, to, from, down, right);
    }
  }

  TensorDesc wanted_;
  bool needed_ = false;     ///< The descriptions differ.
  std::size_t offset_ = 0;  ///< Where it is staged.
};

}  // namespace duplex::cudnn
