// Tests what the GPU's kernels do with one element, in both orders that tensors may lie in, against
// the reference. Only a GPU can show that they also run there.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/cudnn/kernels/elements.h"
#include "core/cudnn/kernels/statistics.h"
#include "tests/cudnn/gpu_elements.h"

namespace duplex::test {
namespace {

template <class Sums>
void sum_channels(const Sums& sums) {
  const View& view = sums.view;
  for (std::uint32_t c = 0; c < view.c; ++c) {
    double a = 0.0, b = 0.0;
    for (std::uint32_t i = 0; i < view.elements(); ++i) {
      if (view.channel(i) != c) continue;
      const cudnn::Pairs<1> pair = sums.template terms<1>(i, c);
      a += static_cast<double>(pair.a[0]);
      b += static_cast<double>(pair.b[0]);
    }
    sums.finish(c, a, b);
  }
}

using GpuElements = InBothOrders;

TEST_P(GpuElements, PlacesAndOffsetsAreInverse) {
  const Shape shape{3, 5, 4, 7};
  const View v = view(shape);
  Values numbers(v.elements());
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  const Values lying = laid(v, numbers);
  for (std::uint32_t i = 0; i < v.elements(); ++i) {
    const cudnn::Coord p = v.coord(i);
    EXPECT_EQ(v.offset(p), i);
    EXPECT_EQ(v.channel(i), p.c);
    EXPECT_EQ(((p.n * 5 + p.c) * 4 + p.y) * 7 + p.x, static_cast<std::uint32_t>(lying[i]));
  }
}

TEST_P(GpuElements, ConversionGoesThereAndBack) {
  const Shape shape{2, 3, 4, 5};
  const Values values = random_values(shape, 1);
  Values there(values.size()), back(values.size());
  const View from = view_of(shape, Order::nchw), to = view(shape);
  for_each(there.size(), cudnn::Convert<float, float>{to, from, there.data(), values.data(),
                                                      same_layout(to, from)});
  EXPECT_EQ(there, laid(to, values));
  for_each(back.size(), cudnn::Convert<float, float>{from, to, back.data(), there.data(),
                                                     same_layout(to, from)});
  EXPECT_EQ(back, values);
}

TEST_P(GpuElements, AFrameGoesAroundAMapAndOffAgain) {
  const Shape shape{2, 3, 4, 5}, framed{2, 3, 7, 6};
  const Values values = random(shape, 2);
  Values frame(static_cast<std::size_t>(framed.elements()), 7.0F), back(values.size());
  for_each(frame.size(), cudnn::MoveMap<float, float>{view(framed), view(shape), frame.data(),
                                                      values.data(), 2, 1});
  double sum = 0.0, wanted = 0.0;
  for (const float value : frame) sum += static_cast<double>(value);
  for (const float value : values) wanted += static_cast<double>(value);
  EXPECT_NEAR(sum, wanted, 1e-4);
  for_each(back.size(), cudnn::MoveMap<float, float>{view(shape), view(framed), back.data(),
                                                     frame.data(), -2, -1});
  EXPECT_EQ(back, values);
}

TEST_P(GpuElements, BatchNormalisation) {
  for (const bool relu : {false, true}) {
    for (const Shape& shape : {Shape{3, 4, 5, 2}, Shape{1, 3, 1, 1}, Shape{6, 5, 1, 1}}) {
      const Shape channels{shape.c()};
      const BatchNormSpec spec{1e-5F, 0.1F, relu};
      const auto norm = device->batch_norm(spec, plain_desc(shape));
      Values x = random_values(shape, 7);
      for (float& value : x) value += 10.0F;  // Values far from zero show lost digits.
      const Values dy = random_values(shape, 8), gamma = random_values(channels, 9, 0.5F, 1.5F),
                   beta = random_values(channels, 10);
      Values mean = random_values(channels, 11), var = random_values(channels, 12, 0.5F, 1.5F);
      const TensorDesc desc = plain_desc(channels);
      Tensor y = memory.poisoned(norm->y), dx = memory.poisoned(norm->x),
             dgamma = memory.poisoned(desc), dbeta = memory.poisoned(desc),
             running_mean = memory.holding(desc, mean), running_var = memory.holding(desc, var);
      const Tensor x_tensor = memory.holding(norm->x, x), g = memory.holding(desc, gamma),
                   b = memory.holding(desc, beta);
      norm->forward_training(y, running_mean, running_var, x_tensor, g, b);
      norm->backward(dx, dgamma, dbeta, memory.holding(norm->y, dy), x_tensor, g);

      const View v = view(shape);
      const Values from = laid(v, x), given = laid(v, dy);
      const auto count = static_cast<std::size_t>(shape.c());
      Values kept(4 * count), to(x.size()), back(x.size()), to_gamma(count), to_beta(count);
      const cudnn::Moments moments{kept.data(), kept.data() + count, kept.data() + 2 * count,
                                   kept.data() + 3 * count};
      sum_channels(cudnn::BatchSums<float>{v, from.data(), moments, mean.data(), var.data(),
                                           gamma.data(), beta.data(), spec.epsilon, spec.momentum});
      for_each(to.size(), cudnn::Normalise<float>{v, moments, to.data(), from.data(), relu});
      const cudnn::GradientSums<float> sums{v,    moments,         given.data(),  from.data(),
                                            relu, to_gamma.data(), to_beta.data()};
      sum_channels(sums);
      const float share = 1.0F / static_cast<float>(v.n * v.map());
      for_each(back.size(), cudnn::NormaliseBackward<float>{sums, back.data(), share});
      const bool one = v.n * v.map() == 1;  // Then the gradient is zero, but for rounding.
      expect_near(plain(v, to), memory.read(y), 1e-5);
      if (!one) expect_near(plain(v, back), memory.read(dx), 1e-4);
      expect_near(to_beta, memory.read(dbeta), 1e-6);
      if (!one) expect_near(to_gamma, memory.read(dgamma), 1e-5);
      expect_near(mean, memory.read(running_mean), 1e-6);
      expect_near(var, memory.read(running_var), 1e-6);

      norm->forward_inference(y, x_tensor, g, b, running_mean, running_var);
      for_each(to.size(),
               cudnn::NormaliseFixed<float>{v, to.data(), from.data(), gamma.data(), beta.data(),
                                            mean.data(), var.data(), spec.epsilon, relu});
      expect_near(plain(v, to), memory.read(y), 1e-5);
    }
  }
}

TEST_P(GpuElements, BiasesAndTheirGradients) {
  const Shape shape{3, 4, 2, 5};
  const View v = view(shape);
  const Values dy = random_values(shape, 13), bias = random_values({4}, 14);
  Values sums(4), wanted(4), y = laid(v, dy), expected = dy;
  for (std::size_t i = 0; i < dy.size(); ++i) {
    wanted[i / 10 % 4] += dy[i];
    expected[i] = std::max(dy[i] + bias[i / 10 % 4], 0.0F);
  }
  sum_channels(cudnn::BiasSums<float>{v, y.data(), sums.data()});
  expect_near(sums, wanted, 1e-6);
  for_each(y.size(), cudnn::AddBias<float>{v, y.data(), bias.data(), true});
  EXPECT_EQ(plain(v, y), expected);
}

TEST_P(GpuElements, SlicesOfAConcatenation) {
  const std::vector<Shape> shapes{{2, 3, 4, 2}, {2, 1, 4, 2}, {2, 4, 4, 2}};
  std::vector<TensorDesc> descs;
  for (const Shape& shape : shapes) descs.push_back(plain_desc(shape));
  const auto concat = device->concat(descs);
  const View yv = view(concat->y.shape);
  const Values dy = random_values(concat->y.shape, 15);
  std::vector<Tensor> inputs;
  Values to(dy.size());
  std::uint32_t first = 0;
  for (std::size_t k = 0; k < shapes.size(); ++k) {
    const Values x = random_values(shapes[k], 16 + k);
    inputs.push_back(memory.holding(descs[k], x));
    const Values from = laid(view(shapes[k]), x);
    for_each(from.size(),
             cudnn::IntoSlice<float, float>{{yv, view(shapes[k]), first}, to.data(), from.data()});
    first += static_cast<std::uint32_t>(shapes[k].c());
  }
  Tensor y = memory.poisoned(concat->y);
  concat->forward(y, inputs);
  EXPECT_EQ(plain(yv, to), memory.read(y));

  const Tensor dy_tensor = memory.holding(concat->y, dy);
  const Values given = laid(yv, dy);
  first = 0;
  for (std::size_t k = 0; k < shapes.size(); ++k) {
    const View xv = view(shapes[k]);
    Tensor dx = memory.poisoned(descs[k]);
    Values back(xv.elements());
    for (const bool masked : {false, true}) {
      concat->backward(dx, static_cast<int>(k), dy_tensor, masked ? &y : nullptr);
      for_each(back.size(),
               cudnn::FromSlice<float, float>{
                   {yv, xv, first}, back.data(), given.data(), masked ? to.data() : nullptr});
      EXPECT_EQ(plain(xv, back), memory.read(dx));
    }
    first += xv.c;
  }
}

TEST_P(GpuElements, DropoutDrawsBySample) {
  const Shape shape{3, 4, 2, 3};
  const auto dropout = device->dropout(0.4F, plain_desc(shape));
  const Values x = random_values(shape, 20);
  Tensor y = memory.poisoned(dropout->y);
  dropout->forward(y, memory.holding(dropout->x, x), {5, 6, 7});
  const View v = view(shape);
  const Values from = laid(v, x);
  Values to(x.size());
  for_each(
      to.size(),
      cudnn::Drop<float>{
          v, to.data(), from.data(), 0.4F, 1.0F / (1.0F - 0.4F), {5, 6, std::uint64_t{7} * 24, 0}});
  EXPECT_EQ(plain(v, to), memory.read(y));
  // The channels from the third on of nine.
  dropout->forward(y, memory.holding(dropout->x, x), {5, 6, 7, 2 * 6, 9 * 6});
  for_each(to.size(), cudnn::Drop<float>{v,
                                         to.data(),
                                         from.data(),
                                         0.4F,
                                         1.0F / (1.0F - 0.4F),
                                         {5, 6, std::uint64_t{7 * 9 + 2} * 6, 5 * 6}});
  EXPECT_EQ(plain(v, to), memory.read(y));
}

TEST_P(GpuElements, SumsOfUnlikeLayouts) {
  const Shape shape{2, 3, 4, 5};
  const View av = view(shape), bv = view_of(shape, Order::nchw);
  const Values a = random_values(shape, 21), b = random_values(shape, 22);
  const Values a_laid = laid(av, a);
  Values to(a.size()), wanted(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) wanted[i] = std::max(a[i] + b[i], 0.0F);
  for_each(to.size(), cudnn::Sum<float, float>{av, bv, to.data(), a_laid.data(), b.data(),
                                               av.order == bv.order, true});
  EXPECT_EQ(plain(av, to), wanted);
}

INSTANTIATE_TEST_SUITE_P(Orders, GpuElements, ::testing::Values(Order::nchw, Order::nhwc),
                         name_of_order);

}  // namespace
}  // namespace duplex::test
