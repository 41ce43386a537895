#include "core/cudnn/layout.h"

#include <limits>

#include "core/error.h"

namespace duplex::cudnn {
namespace {

class ChannelsLast final : public Layout {
 public:
  explicit ChannelsLast(const View& view) : view_(view) {}

  bool same(const Layout& other) const override {
    const View& theirs = static_cast<const ChannelsLast&>(other).view_;
    return view_.n == theirs.n && view_.c == theirs.c && view_.h == theirs.h && view_.w == theirs.w;
  }
  const View& view() const { return view_; }

 private:
  View view_;
};

View plain_view(const Shape& shape) {
  if (shape.elements() > std::numeric_limits<std::int32_t>::max())
    throw Error("cuda: a tensor of " + shape.str() + " is too large; take a smaller batch");
  const auto extent = [](std::int64_t value) { return static_cast<std::uint32_t>(value); };
  return {extent(shape.n()), extent(shape.c()), extent(shape.h()), extent(shape.w()), Order::nchw};
}

TensorDesc with_order(const Shape& shape, View view, Order order) {
  TensorDesc desc = plain_desc(shape);
  view.order = order;
  if (order == Order::nhwc && view.c > 1 && view.map() > 1)
    desc.layout = std::make_shared<ChannelsLast>(view);
  return desc;
}

}  // namespace

TensorDesc desc_of(const Shape& shape, Order order) {
  return with_order(shape, plain_view(shape), order);
}

TensorDesc linear_weights(std::int64_t outputs, const TensorDesc& x) {
  View view = view_of(x);
  const Shape shape{outputs, static_cast<std::int64_t>(view.c) * view.map()};
  view.n = plain_view(shape).n;
  return with_order(shape, view, view.order);
}

View view_of(const TensorDesc& desc) {
  return desc.plain() ? plain_view(desc.shape)
                      : static_cast<const ChannelsLast&>(*desc.layout).view();
}

}  // namespace duplex::cudnn
