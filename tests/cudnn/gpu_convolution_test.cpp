// Tests the kernels that check cuDNN's engines: what they compute for one element, in both orders
// that tensors may lie in, against the reference.
#include "core/cudnn/kernels/convolution.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/cudnn/gpu_elements.h"

namespace duplex::test {
namespace {

using cudnn::Coord;
using GpuConvolution = InBothOrders;

constexpr std::uint32_t parts = 5;

std::vector<Coord> coordinates(const View& view) {
  std::vector<Coord> at;
  for (std::uint32_t i = 0; i < view.elements(); ++i) at.push_back(view.coord(i));
  return at;
}

/// Returns the elements whose parts these are.
Values summed(const std::vector<double>& terms) {
  Values sums;
  for (std::size_t i = 0; i < terms.size(); i += parts) {
    double sum = 0.0;
    for (std::size_t j = 0; j < parts; ++j) sum += terms[i + j];
    sums.push_back(static_cast<float>(sum));
  }
  return sums;
}

TEST_P(GpuConvolution, ElementsAreThoseOfTheReference) {
  struct Case {
    Shape x;
    std::int64_t filters, groups;
    Window window;
  };
  for (const Case& c : {Case{{2, 3, 7, 6}, 4, 1, {3, 3, 1, 1, {1, 1, 1, 1}}},
                        Case{{2, 2, 6, 6}, 2, 1, {3, 3, 2, 2, {0, 0, 1, 1}}},
                        Case{{1, 2, 4, 5}, 2, 1, {3, 3, 1, 1, {2, 0, 1, 3}}},
                        Case{{2, 4, 5, 4}, 6, 2, {3, 2, 2, 1, {1, 0, 1, 1}}},
                        Case{{2, 5, 4, 5}, 5, 5, {3, 3, 1, 1, {1, 1, 1, 1}}},
                        Case{{3, 4, 6, 6}, 5, 1, {6, 6, 1, 1, {}}},
                        Case{{1, 2, 9, 8}, 3, 1, {2, 3, 3, 2, {1, 2, 0, 1}}}}) {
    ConvSpec spec;
    spec.filters = c.filters;
    spec.groups = c.groups;
    spec.window = c.window;
    spec.bias = false;
    const auto conv = device->conv(spec, plain_desc(c.x));
    const Shape ws = conv->weights.shape, ys = conv->y.shape;
    const Values x = random_values(c.x, 1), w = random_values(ws, 2), dy = random_values(ys, 3);
    Tensor y = memory.poisoned(conv->y), dx = memory.poisoned(conv->x),
           dw = memory.poisoned(conv->weights), none;
    conv->forward(y, memory.holding(conv->x, x), memory.holding(conv->weights, w), none);
    conv->backward_data(dx, memory.holding(conv->y, dy), memory.holding(conv->weights, w));
    conv->backward_weights(dw, none, memory.holding(conv->y, dy), memory.holding(conv->x, x));

    const View xv = view(c.x), wv = view(ws), yv = view(ys);
    const auto narrow = [](std::int64_t value) { return static_cast<std::int32_t>(value); };
    const cudnn::Convolved of{
        xv,
        wv,
        yv,
        {narrow(c.window.height), narrow(c.window.width), narrow(c.window.stride_y),
         narrow(c.window.stride_x), narrow(c.window.padding.top), narrow(c.window.padding.left)}};
    const Values lx = laid(xv, x), lw = laid(wv, w), ldy = laid(yv, dy);
    const auto computed = [&](const View& result, const auto& body) {
      const std::vector<Coord> at = coordinates(result);
      std::vector<double> to(at.size() * parts);
      for_each(to.size(), body(at.data(), to.data()));
      return plain(result, summed(to));
    };
    expect_near(computed(yv,
                         [&](const Coord* at, double* to) {
                           return cudnn::ConvolutionAt<float>{of, lx.data(), lw.data(),
                                                              at, parts,     to};
                         }),
                memory.read(y), 1e-6);
    expect_near(computed(xv,
                         [&](const Coord* at, double* to) {
                           return cudnn::DataGradientAt<float>{of, lw.data(), ldy.data(),
                                                               at, parts,     to};
                         }),
                memory.read(dx), 1e-6);
    expect_near(computed(wv,
                         [&](const Coord* at, double* to) {
                           return cudnn::WeightsGradientAt<float>{of, lx.data(), ldy.data(),
                                                                  at, parts,     to};
                         }),
                memory.read(dw), 1e-6);
  }
}

INSTANTIATE_TEST_SUITE_P(Orders, GpuConvolution, ::testing::Values(Order::nchw, Order::nhwc),
                         name_of_order);

}  // namespace
}  // namespace duplex::test
