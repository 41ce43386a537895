// Staging is for tensors that a call needs in another layout or type than it gets them in.
#pragma once
#include "core/cudnn/context.h"
#include "core/cudnn/kernels/kernels.h"
#include "core/cudnn/layout.h"

namespace duplex::cudnn {

/// Hands out room in the context's staging memory, one piece after the other, for the tensors that
/// an operation stages in one call.
class Staging {
 public:
  /// Makes room for one more tensor of a description. Returns the offset where it begins, in bytes.
  std::size_t add(const TensorDesc& desc) {
    constexpr std::size_t alignment = 256;
    const std::size_t begin = bytes_;
    bytes_ += (desc.bytes + alignment - 1) / alignment * alignment;
    return begin;
  }
  [[nodiscard]] Reservation reserve(Context& context) const {
    return context.reserve_staging(bytes_);
  }

 private:
  std::size_t bytes_ = 0;
};

/// A tensor that an engine wants in one description and the caller has in another.
class Staged {
 public:
  Staged() = default;
  Staged(const TensorDesc& wanted, const TensorDesc& had, Staging& staging)
      : wanted_(wanted), needed_(!same_storage(wanted, had)) {
    if (needed_) offset_ = staging.add(wanted_);
  }
  /// The tensor has memory of its own, so that what is read stays there until the next read().
  Staged(const TensorDesc& wanted, const TensorDesc& had, const Context& context)
      : wanted_(wanted), needed_(!same_storage(wanted, had)) {
    if (needed_) own_ = context.allocate(wanted_.bytes);
  }

  /// Returns the memory to write to in the place of `tensor`.
  Tensor room(const Context& context, const Tensor& tensor) const {
    if (!needed_) return tensor;
    if (own_.data() != nullptr) return {wanted_, static_cast<float*>(own_.data())};
    return {wanted_, reinterpret_cast<float*>(context.staging() + offset_)};
  }
  /// Returns `tensor` as it is wanted; its map begins at row `down`, column `right` of the wanted
  /// one.
  Tensor read(const Context& context, const Tensor& tensor, std::int32_t down = 0,
              std::int32_t right = 0) const {
    Tensor staged = room(context, tensor);
    if (needed_) move(context, staged, tensor, down, right);
    return staged;
  }
  /// Returns weights or a bias as they are wanted: the copy that the context keeps of them, where
  /// it keeps one, else as read() does.
  Tensor read_weights(const Context& context, const Tensor& weights) const {
    BFloat16* const kept = needed_ ? context.rounded().of(weights.data) : nullptr;
    if (kept != nullptr) return {wanted_, reinterpret_cast<float*>(kept)};
    return read(context, weights);
  }
  /// Converts back into `tensor` what has been written to room(tensor).
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
  std::size_t offset_ = 0;  ///< Where it is staged, in bytes.
  Buffer own_;
};

/// Room for what an operation stages in one call. Weights count only once some have come of which
/// the context keeps no copy.
class StagingRoom {
 public:
  StagingRoom() = default;
  /// `all` includes the weights, `others` does not.
  StagingRoom(Context& context, const Staging& all, const Staging& others)
      : all_(all), reserved_(others.reserve(context)) {}

  /// Call it before anything is staged beside these weights.
  void expect(Context& context, const Tensor& weights) {
    if (has_all_ || context.rounded().of(weights.data) != nullptr) return;
    reserved_ = all_.reserve(context);
    has_all_ = true;
  }

 private:
  Staging all_;
  Reservation reserved_;
  bool has_all_ = false;
};

}  // namespace duplex::cudnn
