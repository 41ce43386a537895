// Tests concatenation along channels, and padding with channels of zeros.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/error.h"
#include "tests/core/operations/gradient_check.h"
#include "tests/core/operations/ops.h"
#include "tests/core/operations/values.h"

namespace duplex::test {
namespace {

/// Returns the shapes of activations of n samples over maps of h x w, with these channels.
std::vector<Shape> parts(std::int64_t n, std::int64_t h, std::int64_t w,
                         const std::vector<std::int64_t>& channels) {
  std::vector<Shape> shapes;
  for (std::int64_t c : channels) shapes.push_back({n, c, h, w});
  return shapes;
}

const std::vector<std::vector<Shape>> concat_cases = {
    parts(2, 2, 3, {3, 1, 4}),   parts(1, 3, 3, {16, 16}),
    parts(2, 3, 2, {16, 5, 32}), parts(1, 2, 2, {64, 128, 32, 32}),
    parts(2, 3, 3, {7, 48}),     parts(1, 1, 1, {2, 2}),
    parts(2, 2, 2, {5}),         parts(3, 5, 7, {24, 40, 8, 1}),
};

/// Joins the parts: element (n, c, pixel) of y is that of the part which channel c falls into.
Values joined(const std::vector<Shape>& shapes, const std::vector<Values>& x) {
  Values y;
  for (std::int64_t n = 0; n < shapes[0].n(); ++n) {
    for (std::size_t part = 0; part < x.size(); ++part) {
      const auto sample = static_cast<std::ptrdiff_t>(x[part].size()) / shapes[part].n();
      y.insert(y.end(), x[part].begin() + n * sample, x[part].begin() + (n + 1) * sample);
    }
  }
  return y;
}

using ConcatTest = BackendTest;

TEST_P(ConcatTest, JoinsAndSplits) {
  for (const std::vector<Shape>& shapes : concat_cases) {
    for (const auto& place : {on_plain, on_convolved}) {
      Fixture fixture(*device, place(*device, shapes, concat_op()));
      SCOPED_TRACE(fixture.op().y.shape.str());
      const std::vector<Values> x = random_inputs(fixture.op(), 1);
      const Values y = joined(shapes, x);
      EXPECT_EQ(fixture.forward(x), y);
      EXPECT_EQ(fixture.backward(y), x);  // the gradient is split as the inputs were joined
    }
  }
}

// These are the parts of an inception module: one is plain, the others are laid out as a
// convolution and a pooling give them.
TEST_P(ConcatTest, MixedLayouts) {
  const std::vector<Shape> shapes = parts(2, 4, 4, {3, 16, 19});
  PoolSpec pool;
  pool.window = {3, 3, 1, 1, {1, 1, 1, 1}};
  const std::vector<TensorDesc> descs = {plain_desc(shapes[0]), convolved_desc(*device, shapes[1]),
                                         device->pool(pool, convolved_desc(*device, shapes[2]))->y};
  Fixture fixture(*device, concat_op()(*device, descs));
  const std::vector<Values> x = random_inputs(fixture.op(), 1);
  const Values y = joined(shapes, x);
  EXPECT_EQ(fixture.forward(x), y);
  EXPECT_EQ(fixture.backward(y), x);
}

TEST_P(ConcatTest, Vectors) {
  Fixture fixture(*device, on_plain(*device, {{2, 3}, {2, 2}}, concat_op()));
  EXPECT_EQ(fixture.forward({{1, 2, 3, 4, 5, 6}, {7, 8, 9, 10}}),
            (Values{1, 2, 3, 7, 8, 4, 5, 6, 9, 10}));
}

TEST_P(ConcatTest, MasksByTheOutput) {
  for (const std::vector<Shape>& shapes : concat_cases) {
    std::vector<TensorDesc> descs;
    for (const Shape& shape : shapes) descs.push_back(convolved_desc(*device, shape));
    const auto concat = device->concat(descs);
    SCOPED_TRACE(concat->y.shape.str());
    Memory memory(*device);
    std::vector<Tensor> x;
    std::vector<Values> values, expected;
    for (const TensorDesc& desc : concat->x) {
      values.push_back(exact_values(desc.shape, values.size()));  // These values have zeros.
      x.push_back(memory.holding(desc, values.back()));
    }
    Tensor y = memory.poisoned(concat->y);
    concat->forward(y, x);
    const Values dy_values = random_values(concat->y.shape, 9);
    const Tensor dy = memory.holding(concat->y, dy_values);
    for (std::size_t i = 0; i < x.size(); ++i) {
      Tensor plain = memory.poisoned(concat->x[i]), masked = memory.poisoned(concat->x[i]);
      concat->backward(plain, static_cast<int>(i), dy, nullptr);
      concat->backward(masked, static_cast<int>(i), dy, &y);
      Values wanted = memory.read(plain);
      for (std::size_t j = 0; j < wanted.size(); ++j) {
        if (!(values[i][j] > 0.0F)) wanted[j] = 0.0F;
      }
      EXPECT_EQ(memory.read(masked), wanted) << "input " << i;
    }
  }
}

TEST_P(ConcatTest, Gradients) {
  for (const auto& place : {on_plain, on_convolved}) {
    Fixture fixture(*device, place(*device, parts(2, 2, 2, {3, 17, 1}), concat_op()));
    EXPECT_TRUE(gradients_agree(fixture, random_inputs(fixture.op(), 5), concat_tolerance));
  }
}

TEST_P(ConcatTest, RefusesWhatDoesNotFit) {
  EXPECT_THROW(device->concat({}), Error);
  EXPECT_THROW(device->concat({plain_desc({1, 2, 3, 3}), plain_desc({1, 2, 3, 4})}), Error);
  EXPECT_THROW(device->concat({plain_desc({1, 2, 3, 3}), plain_desc({2, 2, 3, 3})}), Error);
}

using PadChannelsTest = BackendTest;

TEST_P(PadChannelsTest, AppendsZeros) {
  for (const Shape& shape : {Shape{2, 3, 2, 2}, Shape{2, 16, 3, 2}, Shape{1, 33, 2, 2}}) {
    for (std::int64_t channels : {shape.c(), shape.c() + 1, 2 * shape.c()}) {
      SCOPED_TRACE(shape.str() + " to " + std::to_string(channels));
      for (const auto& place : {on_plain, on_convolved}) {
        Fixture fixture(*device, place(*device, {shape}, pad_channels_op(channels)));
        const Shape zeros = {shape.n(), channels - shape.c(), shape.h(), shape.w()};
        const Values x = random_values(shape, 1);
        const Values none(static_cast<std::size_t>(zeros.elements()), 0.0F);
        EXPECT_EQ(fixture.forward({x}), joined({shape, zeros}, {x, none}));
        const Values ones(none.size(), 1.0F);  // the zeros' gradient goes nowhere
        EXPECT_EQ(fixture.backward(joined({shape, zeros}, {x, ones}))[0], x);
      }
    }
  }
}

TEST_P(PadChannelsTest, Gradients) {
  for (const auto& place : {on_plain, on_convolved}) {
    Fixture fixture(*device, place(*device, {{2, 9, 2, 3}}, pad_channels_op(18)));
    EXPECT_TRUE(gradients_agree(fixture, random_inputs(fixture.op(), 5), pad_channels_tolerance));
  }
}

TEST_P(PadChannelsTest, RefusesFewerChannels) {
  EXPECT_THROW(device->pad_channels(2, plain_desc({1, 3, 2, 2})), Error);
}

INSTANTIATE_TEST_SUITE_P(Backends, ConcatTest, ::testing::ValuesIn(backends()), backend_label);
INSTANTIATE_TEST_SUITE_P(Backends, PadChannelsTest, ::testing::ValuesIn(backends()), backend_label);

using ConcatComparisonTest = ComparisonTest;

TEST_P(ConcatComparisonTest, AfterConvolutions) {
  for (const std::vector<Shape>& shapes : concat_cases) {
    Fixture expected(*reference, after_conv(*reference, shapes, concat_op()));
    Fixture actual(*device, after_conv(*device, shapes, concat_op()));
    SCOPED_TRACE(expected.op().y.shape.str());
    EXPECT_TRUE(same_results(actual, expected, random_inputs(expected.op(), 1), conv_tolerance));
  }
}

TEST_P(ConcatComparisonTest, PadChannelsAfterConvolution) {
  for (const Shape& shape : {Shape{2, 64, 7, 7}, Shape{1, 5, 4, 6}, Shape{3, 24, 3, 3}}) {
    SCOPED_TRACE(shape.str());
    const OpMaker pad = pad_channels_op(2 * shape.c());
    Fixture expected(*reference, after_conv(*reference, {shape}, pad));
    Fixture actual(*device, after_conv(*device, {shape}, pad));
    EXPECT_TRUE(same_results(actual, expected, random_inputs(expected.op(), 1), conv_tolerance));
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, ConcatComparisonTest, ::testing::ValuesIn(rounding_backends()),
                         backend_label);

}  // namespace
}  // namespace duplex::test
