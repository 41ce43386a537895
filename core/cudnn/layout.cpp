#include "core/cudnn/layout.h"

#include <algorithm>
#include <limits>

#include "core/error.h"

namespace duplex::cudnn {
namespace {

class CudnnLayout final : public Layout {
 public:
  explicit CudnnLayout(const View& view) : view_(view) {}

  bool same(const Layout& other) const override {
    const View& theirs = static_cast<const CudnnLayout&>(other).view_;
    return view_.n == theirs.n && view_.c == theirs.c && view_.h == theirs.h &&
           view_.w == theirs.w && view_.order == theirs.order && view_.type == theirs.type;
  }
  const View& view() const { return view_; }

 private:
  View view_;
};

View plain_view(const Shape& shape) {
  if (shape.elements() > std::numeric_limits<std::int32_t>::max())
    throw Error("cuda: a tensor of " + shape.str() + " is too large; take a smaller batch");
  const auto extent = [](std::int64_t value) { return static_cast<std::uint32_t>(value); };
  return {extent(shape.n()), extent(shape.c()), extent(shape.h()), extent(shape.w())};
}

TensorDesc laid_out(const Shape& shape, View view, Order order, Type type) {
  view.order = view.c > 1 && view.map() > 1 ? order : Order::nchw;
  view.type = type;
  TensorDesc desc = plain_desc(shape);
  if (view.order == Order::nchw && type == Type::float32) return desc;
  desc.layout = std::make_shared<CudnnLayout>(view);
  desc.bytes = view.bytes();
  return desc;
}

/// A piece has so many bytes on the host, or one sample: VGG's largest weights would need 400 MB.
constexpr std::size_t usual_piece_bytes = std::size_t{16} << 20;

/// Returns the most samples that a piece of such a tensor has.
std::uint32_t samples_of_piece(const View& view) {
  const std::size_t sample = std::size_t{view.elements()} / std::max(view.n, 1U) * sizeof(float);
  const std::size_t samples = usual_piece_bytes / std::max<std::size_t>(sample, 1);
  return static_cast<std::uint32_t>(std::clamp<std::size_t>(samples, 1, view.n));
}

}  // namespace

TensorDesc desc_of(const Shape& shape, Order order, Type type) {
  return laid_out(shape, plain_view(shape), order, type);
}

TensorDesc linear_weights(std::int64_t outputs, const TensorDesc& x, Type type) {
  View view = view_of(x);
  const Shape shape{outputs, static_cast<std::int64_t>(view.c) * view.map()};
  view.n = plain_view(shape).n;
  return laid_out(shape, view, view.order, type);
}

View view_of(const TensorDesc& desc) {
  return desc.plain() ? plain_view(desc.shape)
                      : static_cast<const CudnnLayout&>(*desc.layout).view();
}

TensorDesc plain_desc_of(const TensorDesc& desc) {
  const View view = view_of(desc);
  const auto extent = [](std::uint32_t value) { return static_cast<std::int64_t>(value); };
  return plain_desc({extent(view.n), extent(view.c), extent(view.h), extent(view.w)});
}

Piece piece_from(const Tensor& tensor, std::uint32_t first) {
  const View whole = view_of(tensor.desc);
  View view = whole;
  if (!tensor.desc.plain()) view.n = std::min(samples_of_piece(whole), whole.n - first);
  if (view.n == whole.n) return {tensor, plain_desc_of(tensor.desc), 0};
  const Shape shape{view.n, view.c, view.h, view.w};
  char* const data = reinterpret_cast<char*>(tensor.data) + first * (tensor.desc.bytes / whole.n);
  return {{laid_out(shape, view, view.order, view.type), reinterpret_cast<float*>(data)},
          plain_desc(shape),
          first * (std::size_t{whole.elements()} / whole.n)};
}

std::size_t piece_bytes(const TensorDesc& desc) {
  if (desc.plain()) return desc.bytes;
  const View view = view_of(desc);
  return std::size_t{view.elements()} / view.n * samples_of_piece(view) * sizeof(float);
}

View view_like(const TensorDesc& desc, const TensorDesc& other) {
  View view = view_of(desc);
  if (!desc.plain() || other.plain()) return view;
  view = view_of(other);
  view.order = Order::nchw;
  view.type = Type::float32;
  return view;
}

std::size_t workspace_limit(std::size_t gpu_bytes) {
  return std::max(std::size_t{512} << 20, gpu_bytes / 16);
}

bool is_even(const Padding& padding) {
  return padding.top == padding.bottom && padding.left == padding.right;
}

Shape framed_shape(const ConvSpec& spec, const Shape& x) {
  const Padding& padding = spec.window.padding;
  return {x.n(), x.c(), x.h() + padding.top + padding.bottom, x.w() + padding.left + padding.right};
}

}  // namespace duplex::cudnn
