// Helps tests that run on the host, in a loop, what the GPU's kernels do with one element.
#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "core/cudnn/kernels/view.h"
#include "core/reference/device.h"
#include "tests/core/operations/backends.h"
#include "tests/core/operations/fixture.h"
#include "tests/core/operations/values.h"

namespace duplex::test {

using cudnn::Order;
using cudnn::View;

inline View view_of(const Shape& shape, Order order) {
  const auto extent = [](std::int64_t value) { return static_cast<std::uint32_t>(value); };
  return {extent(shape.n()), extent(shape.c()), extent(shape.h()), extent(shape.w()), order};
}

/// Runs body(i) from the last i to the first, because no order may be relied on.
template <class Body>
void for_each(std::size_t count, const Body& body) {
  for (std::size_t i = count; i-- > 0;) body(static_cast<std::uint32_t>(i));
}

/// laid() returns row-major values as they lie in a view, and plain() is the way back. They are
/// written without View's own arithmetic.
inline Values laid(const View& view, const Values& plain) {
  Values result(plain.size());
  std::size_t i = 0;
  for (std::uint32_t n = 0; n < view.n; ++n)
    for (std::uint32_t c = 0; c < view.c; ++c)
      for (std::uint32_t p = 0; p < view.h * view.w; ++p, ++i)
        result[view.order == Order::nchw ? i : (n * view.h * view.w + p) * view.c + c] = plain[i];
  return result;
}
inline Values plain(const View& view, const Values& lying) {
  Values numbers(lying.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  const Values from = laid(view, numbers);  // from[k] is the plain place of the value at k.
  Values result(lying.size());
  for (std::size_t k = 0; k < lying.size(); ++k)
    result[static_cast<std::size_t>(from[k])] = lying[k];
  return result;
}

class InBothOrders : public ::testing::TestWithParam<Order> {
 protected:
  View view(const Shape& shape) const { return view_of(shape, GetParam()); }
  Values random(const Shape& shape, std::uint64_t seed) const {
    return laid(view(shape), random_values(shape, seed));
  }

  std::unique_ptr<Device> device = make_reference_device();
  Memory memory{*device};
};

inline std::string name_of_order(const ::testing::TestParamInfo<Order>& order) {
  return order.param == Order::nchw ? "nchw" : "nhwc";
}

inline void expect_near(const Values& got, const Values& wanted, double tolerance) {
  ASSERT_EQ(got.size(), wanted.size());
  EXPECT_LE(relative_error(got, wanted), tolerance);
}

}  // namespace duplex::test
