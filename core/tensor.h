// A tensor has elements somewhere on a device, float32 unless its layout stores another type. A
// description says the logical shape and how the elements lie; only the device understands the
// layout, which is opaque to everybody else.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "core/shape.h"

namespace duplex {

/// Says how a device lays elements out. Only that device makes, understands and compares it. No
/// layout (a null pointer) means plain: row-major in logical order, without padding.
class Layout {
 public:
  virtual ~Layout() = default;
  /// Returns whether elements lie the same way. `other` is a layout of the same device.
  virtual bool same(const Layout& other) const { return this == &other; }
};

struct TensorDesc {
  Shape shape;
  std::shared_ptr<const Layout> layout;  ///< Null: plain.
  std::size_t bytes = 0;                 ///< Storage, any padding of the layout included.

  bool plain() const { return layout == nullptr; }
};

/// Returns whether the shapes are equal and elements lie the same way. Element-wise loops over
/// storage may mix such tensors.
inline bool same_storage(const TensorDesc& a, const TensorDesc& b) {
  if (a.shape != b.shape) return false;
  if (a.plain() || b.plain()) return a.plain() && b.plain();
  return a.layout->same(*b.layout);
}

/// Returns the description of a plain float32 tensor.
inline TensorDesc plain_desc(const Shape& shape) {
  return {shape, nullptr, static_cast<std::size_t>(shape.elements()) * sizeof(float)};
}

/// Device memory, which is freed when the buffer is destroyed. A buffer can be moved, not copied.
class Buffer {
 public:
  Buffer() = default;
  Buffer(void* data, std::size_t bytes, std::function<void(void*)> release)
      : data_(data, std::move(release)), bytes_(bytes) {}

  void* data() const { return data_.get(); }
  std::size_t bytes() const { return bytes_; }

 private:
  std::unique_ptr<void, std::function<void(void*)>> data_{nullptr, [](void*) {}};
  std::size_t bytes_ = 0;
};

/// A view of device memory as a tensor. Copies refer to the same elements; somebody else's Buffer
/// keeps them alive. Whether a function reads, overwrites or accumulates is said where it is
/// declared.
struct Tensor {
  TensorDesc desc;
  float* data = nullptr;

  const Shape& shape() const { return desc.shape; }
  /// Returns the elements in storage of a float32 layout, padding included, which element-wise
  /// operations on equal layouts walk over.
  std::int64_t stored() const { return static_cast<std::int64_t>(desc.bytes / sizeof(float)); }
  explicit operator bool() const { return data != nullptr; }
};

}  // namespace duplex
