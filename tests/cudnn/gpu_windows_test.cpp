// Tests what the GPU's kernels of pooling and LRN do with one element, in both orders that tensors
// may lie in, against the reference.
#include "core/cudnn/kernels/windows.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/cudnn/gpu_elements.h"

namespace duplex::test {
namespace {

using GpuWindows = InBothOrders;

TEST_P(GpuWindows, Pooling) {
  struct Case {
    Shape x;
    Window window;
  };
  for (const Case& c :
       {Case{{2, 3, 7, 6}, {3, 3, 2, 2, {0, 0, 1, 1}}}, Case{{1, 5, 6, 6}, {2, 2, 2, 2, {}}},
        Case{{2, 2, 5, 4}, {3, 3, 1, 1, {1, 1, 1, 1}}}, Case{{2, 3, 7, 5}, {7, 5, 1, 1, {}}},
        Case{{1, 2, 9, 8}, {2, 3, 3, 2, {1, 2, 0, 1}}}}) {
    for (const PoolKind kind : {PoolKind::max, PoolKind::average}) {
      const auto pool = device->pool({kind, c.window}, plain_desc(c.x));
      const Shape ys = pool->y.shape;
      const Values x = exact_values(c.x, 3), dy = random_values(ys, 4);  // x has ties.
      Tensor y = memory.poisoned(pool->y), dx = memory.poisoned(pool->x);
      pool->forward(y, memory.holding(pool->x, x));
      pool->backward(dx, memory.holding(pool->y, dy));

      const View xv = view(c.x), yv = view(ys);
      const auto narrow = [](std::int64_t value) { return static_cast<std::int32_t>(value); };
      const cudnn::PoolWindow window_of_pool{
          narrow(c.window.height),   narrow(c.window.width),       narrow(c.window.stride_y),
          narrow(c.window.stride_x), narrow(c.window.padding.top), narrow(c.window.padding.left)};
      const Values from = laid(xv, x), given = laid(yv, dy);
      Values to(given.size()), back(from.size());
      std::vector<std::uint8_t> argmax(to.size());
      if (kind == PoolKind::max) {
        for_each(to.size(), cudnn::MaxPool<float, std::uint8_t>{xv, yv, window_of_pool, to.data(),
                                                                argmax.data(), from.data()});
        for_each(back.size(),
                 cudnn::MaxPoolBackward<float, std::uint8_t>{xv, yv, window_of_pool, back.data(),
                                                             argmax.data(), given.data()});
      } else {
        for_each(to.size(),
                 cudnn::AveragePool<float>{xv, yv, window_of_pool, to.data(), from.data()});
        for_each(back.size(), cudnn::AveragePoolBackward<float>{xv, yv, window_of_pool, back.data(),
                                                                given.data()});
      }
      expect_near(plain(yv, to), memory.read(y), kind == PoolKind::max ? 0.0 : 1e-6);
      expect_near(plain(xv, back), memory.read(dx), 1e-6);
    }
  }
}

TEST_P(GpuWindows, LocalResponseNormalisation) {
  const Shape shape{2, 7, 3, 4};
  const LrnSpec spec{5, 0.3F, 0.75F, 2.0F};
  const auto lrn = device->lrn(spec, plain_desc(shape));
  const Values x = random_values(shape, 5), dy = random_values(shape, 6);
  Tensor y = memory.poisoned(lrn->y), dx = memory.poisoned(lrn->x);
  const Tensor x_tensor = memory.holding(lrn->x, x);
  lrn->forward(y, x_tensor);
  lrn->backward(dx, memory.holding(lrn->y, dy), x_tensor);

  const View v = view(shape);
  const Values from = laid(v, x), given = laid(v, dy);
  Values to(x.size()), scale(x.size()), back(x.size());
  const float share = spec.alpha / 5.0F;
  for_each(to.size(), cudnn::LrnForward<float>{v, 2, share, spec.beta, spec.k, to.data(),
                                               scale.data(), from.data()});
  for_each(back.size(),
           cudnn::LrnBackward<float>{v, 2, 2.0F * spec.beta * share, spec.beta, back.data(),
                                     given.data(), from.data(), scale.data()});
  expect_near(plain(v, to), memory.read(y), 1e-6);
  expect_near(plain(v, back), memory.read(dx), 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Orders, GpuWindows, ::testing::Values(Order::nchw, Order::nhwc),
                         name_of_order);

}  // namespace
}  // namespace duplex::test
