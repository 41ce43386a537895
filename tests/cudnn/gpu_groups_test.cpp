// Kernels that read and write groups of neighbouring elements do with each element what they do
// with one alone (tests/cudnn/gpu_elements_test.cpp): they give the same bits, of both types, in
// both orders.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "core/cudnn/kernels/elements.h"
#include "core/cudnn/kernels/statistics.h"
#include "core/cudnn/kernels/summed_gradients.h"
#include "core/cudnn/kernels/updates.h"
#include "core/cudnn/kernels/windows.h"
#include "tests/core/operations/values.h"

namespace duplex::test {
namespace {

using cudnn::BFloat16;
using cudnn::Order;
using cudnn::View;

template <class Value>
std::vector<Value> random(std::size_t count, std::uint64_t seed) {
  const std::vector<float> values = random_values({static_cast<std::int64_t>(count)}, seed);
  return {values.begin(), values.end()};
}

/// Runs body(i) from the last i to the first, because no order may be relied on.
template <class Body>
void one_by_one(const Body& body, std::uint32_t count) {
  for (std::uint32_t i = count; i-- > 0;) body(i);
}
/// Runs groups, then the rest, as core/cudnn/kernels/launch.h does.
template <class Body>
void in_groups(const Body& body, std::uint32_t count) {
  constexpr std::uint32_t n = Body::group;
  for (std::uint32_t k = count / n; k-- > 0;) body.template operator()<Body::group>(k * n);
  for (std::uint32_t i = count / n * n; i < count; ++i) body(i);
}

template <class Value>
void expect_same_bits(const std::vector<Value>& got, const std::vector<Value>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_EQ(std::memcmp(&got[i], &wanted[i], sizeof(Value)), 0)
        << i << ": " << float{got[i]} << ", not " << float{wanted[i]};
}

/// make(to) returns a body for `count` elements. It writes to the `size` elements of `to`, and may
/// read them before.
template <class Value, class Make>
void expect_groups_like_elements(std::size_t size, std::uint32_t count, const Make& make) {
  std::vector<Value> wanted = random<Value>(size, 1), got = wanted;
  one_by_one(make(wanted.data()), count);
  const auto body = make(got.data());
  ASSERT_TRUE(body.grouped());
  in_groups(body, count);
  expect_same_bits(got, wanted);
  EXPECT_FALSE(make(got.data() + 1).grouped());  // No group may begin there.
}

template <class Value>
class GpuGroups : public ::testing::Test {};
using Values = ::testing::Types<float, BFloat16>;
TYPED_TEST_SUITE(GpuGroups, Values, );

constexpr std::uint32_t odd = 8 * 13 + 5;  ///< The last elements fill no group.
const View views[] = {
    {2, 16, 3, 5, Order::nhwc}, {2, 3, 4, 6, Order::nchw}, {3, 24, 1, 1, Order::nchw}};
/// None of these fits into groups.
const View none[] = {
    {2, 6, 4, 8, Order::nhwc}, {2, 8, 3, 5, Order::nchw}, {8, 6, 1, 1, Order::nchw}};

TYPED_TEST(GpuGroups, OfElementsInARow) {
  using Value = TypeParam;
  const std::vector<Value> a = random<Value>(odd, 2), b = random<Value>(odd, 3);
  const auto check = [](const auto& make) { expect_groups_like_elements<Value>(odd, odd, make); };
  check([](Value* to) { return cudnn::Fill<Value>{to, 0.3F}; });
  check([&](Value* to) { return cudnn::Accumulate<Value>{to, a.data()}; });
  check([&](Value* to) { return cudnn::Relu<Value>{to, a.data()}; });
  check([&](Value* to) { return cudnn::ReluBackward<Value>{to, a.data(), b.data()}; });
  check([&](Value* to) { return cudnn::Sigmoid<Value>{to, a.data()}; });
  check([&](Value* to) { return cudnn::SigmoidBackward<Value>{to, a.data(), b.data()}; });
}

TYPED_TEST(GpuGroups, OfAConversion) {
  using Value = TypeParam;
  const std::vector<float> plain = random<float>(odd, 2);
  const std::vector<BFloat16> rounded = random<BFloat16>(odd, 3);
  const View view{1, odd, 1, 1, Order::nchw};
  expect_groups_like_elements<Value>(odd, odd, [&](Value* to) {
    return cudnn::Convert<Value, float>{view, view, to, plain.data(), true};
  });
  expect_groups_like_elements<Value>(odd, odd, [&](Value* to) {
    return cudnn::Convert<Value, BFloat16>{view, view, to, rounded.data(), true};
  });
  std::vector<Value> to(odd);
  EXPECT_FALSE(
      (cudnn::Convert<Value, float>{view, view, to.data(), plain.data(), false}.grouped()));
}

TYPED_TEST(GpuGroups, OfASum) {
  using Value = TypeParam;
  const View view{1, odd, 1, 1, Order::nchw};
  const std::vector<Value> a = random<Value>(odd, 2);
  const std::vector<float> plain = random<float>(odd, 3);
  const std::vector<BFloat16> rounded = random<BFloat16>(odd, 4);
  for (const bool relu : {false, true}) {
    expect_groups_like_elements<Value>(odd, odd, [&](Value* to) {
      return cudnn::Sum<Value, float>{view, view, to, a.data(), plain.data(), true, relu};
    });
    expect_groups_like_elements<Value>(odd, odd, [&](Value* to) {
      return cudnn::Sum<Value, BFloat16>{view, view, to, a.data(), rounded.data(), true, relu};
    });
  }
}

TYPED_TEST(GpuGroups, OfASumOfGradients) {
  using Value = TypeParam;
  std::vector<std::vector<Value>> all;
  for (std::uint64_t k = 0; k < 9; ++k) all.push_back(random<Value>(odd, 2 + k));
  for (int count = 1; count <= 8; ++count) {
    for (const bool masked : {false, true}) {
      expect_groups_like_elements<Value>(odd, odd, [&](Value* to) {
        cudnn::MaskedSum<Value> sum{to, masked ? all[8].data() : nullptr, {}, count};
        for (std::size_t k = 0; k < 8; ++k) sum.inputs.at[k] = all[k].data();
        return sum;
      });
    }
  }
  std::vector<const Value*> listed;
  for (std::size_t k = 0; k < 21; ++k) listed.push_back(all[k % 8].data());
  for (const int count : {9, 16, 21}) {
    expect_groups_like_elements<Value>(odd, odd, [&](Value* to) {
      return cudnn::MaskedSum<Value, cudnn::ListedInputs<Value>>{
          to, all[8].data(), {listed.data(), true}, count};
    });
  }
}

TYPED_TEST(GpuGroups, OfABias) {
  using Value = TypeParam;
  const std::vector<float> bias = random<float>(24, 2);
  for (const View& view : views) {
    for (const bool relu : {false, true}) {
      expect_groups_like_elements<Value>(view.elements(), view.elements(), [&](Value* to) {
        return cudnn::AddBias<Value>{view, to, bias.data(), relu};
      });
    }
  }
  std::vector<Value> to(512);
  for (const View& view : none)
    EXPECT_FALSE((cudnn::AddBias<Value>{view, to.data(), bias.data(), false}.grouped()));
}

/// Numbers for the channels of a batch normalisation.
struct Channels {
  explicit Channels(std::uint64_t seed) : numbers(random<float>(6 * 24, seed)) {}
  float* at(std::size_t k) { return numbers.data() + 24 * k; }
  cudnn::Moments moments() { return {at(0), at(1), at(2), at(3)}; }

  std::vector<float> numbers;
};

TYPED_TEST(GpuGroups, OfANormalisation) {
  using Value = TypeParam;
  Channels channels(2);
  for (float& var : channels.numbers) var = std::abs(var);
  for (const View& view : views) {
    const std::uint32_t count = view.elements();
    const std::vector<Value> x = random<Value>(count, 3), dy = random<Value>(count, 4);
    for (const bool relu : {false, true}) {
      expect_groups_like_elements<Value>(count, count, [&](Value* to) {
        return cudnn::Normalise<Value>{view, channels.moments(), to, x.data(), relu};
      });
      expect_groups_like_elements<Value>(count, count, [&](Value* to) {
        return cudnn::NormaliseFixed<Value>{
            view,           to,    x.data(), channels.at(0), channels.at(1), channels.at(2),
            channels.at(3), 1e-5F, relu};
      });
      const cudnn::GradientSums<Value> sums{view, channels.moments(), dy.data(),     x.data(),
                                            relu, channels.at(4),     channels.at(5)};
      expect_groups_like_elements<Value>(count, count, [&](Value* to) {
        return cudnn::NormaliseBackward<Value>{sums, to, 0.1F};
      });
    }
  }
}

/// Expects that every group has the pairs that its elements have alone.
template <class Sums>
void expect_pairs_like_elements(const Sums& sums) {
  const View& view = sums.view;
  constexpr std::uint32_t n = Sums::group;
  ASSERT_TRUE(sums.grouped());
  for (std::uint32_t i = 0; i < view.elements(); i += n) {
    const cudnn::Pairs<Sums::group> got = sums.template terms<Sums::group>(i, view.channel(i));
    for (std::uint32_t k = 0; k < n; ++k) {
      const cudnn::Pairs<1> wanted = sums.template terms<1>(i + k, view.channel(i + k));
      ASSERT_EQ(got.a[static_cast<int>(k)], wanted.a[0]) << i << " + " << k;
      ASSERT_EQ(got.b[static_cast<int>(k)], wanted.b[0]) << i << " + " << k;
    }
  }
}

TYPED_TEST(GpuGroups, OfSums) {
  using Value = TypeParam;
  Channels channels(2);
  for (const View& view : views) {
    const std::vector<Value> x = random<Value>(view.elements(), 3),
                             dy = random<Value>(view.elements(), 4);
    expect_pairs_like_elements(cudnn::BiasSums<Value>{view, dy.data(), nullptr});
    expect_pairs_like_elements(cudnn::BatchSums<Value>{
        view, x.data(), {}, nullptr, nullptr, nullptr, nullptr, 0.0F, 0.0F});
    std::vector<Value> sum(view.elements());
    for (const Value* mask : {static_cast<const Value*>(nullptr), x.data()})
      expect_pairs_like_elements(cudnn::SummedGradients<Value>{
          view,
          {sum.data(), mask, {{x.data(), dy.data()}}, 2},
          {view, channels.moments(), sum.data(), x.data(), false, nullptr, nullptr}});
    for (const bool relu : {false, true})
      expect_pairs_like_elements(cudnn::GradientSums<Value>{view, channels.moments(), dy.data(),
                                                            x.data(), relu, nullptr, nullptr});
  }
  const std::vector<Value> x(512);
  for (const View& view : none)
    EXPECT_FALSE((cudnn::BiasSums<Value>{view, x.data(), nullptr}.grouped()));
}

/// `part` has some channels of a tensor of `channels` channels, from `first` on.
struct SliceCase {
  View part;
  std::uint32_t first, channels;

  cudnn::Slice slice() const {
    View whole = part;
    whole.c = channels;
    return {whole, part, first};
  }
};

TYPED_TEST(GpuGroups, OfASlice) {
  using Value = TypeParam;
  for (const SliceCase& c :
       {SliceCase{{2, 16, 3, 5, Order::nhwc}, 8, 40}, SliceCase{{2, 3, 4, 2, Order::nchw}, 5, 9},
        SliceCase{{3, 8, 1, 1, Order::nchw}, 16, 24}}) {
    const cudnn::Slice slice = c.slice();
    const std::uint32_t count = slice.part.elements(), all = slice.whole.elements();
    const std::vector<Value> x = random<Value>(all, 2), dy = random<Value>(all, 3);
    expect_groups_like_elements<Value>(all, count, [&](Value* to) {
      return cudnn::IntoSlice<Value, Value>{slice, to, x.data()};
    });
    for (const Value* mask : {static_cast<const Value*>(nullptr), x.data()}) {
      expect_groups_like_elements<Value>(count, count, [&](Value* to) {
        return cudnn::FromSlice<Value, Value>{slice, to, dy.data(), mask};
      });
    }
  }
}

TYPED_TEST(GpuGroups, OfASliceThatBeginsOrEndsWithinAGroup) {
  using Value = TypeParam;
  std::vector<Value> to(4096), from(4096);
  const auto grouped = [&](const SliceCase& c) {
    return cudnn::IntoSlice<Value, Value>{c.slice(), to.data(), from.data()}.grouped();
  };
  EXPECT_TRUE(grouped({{2, 16, 3, 5, Order::nhwc}, 8, 32}));
  EXPECT_FALSE(grouped({{2, 16, 3, 5, Order::nhwc}, 6, 32}));
  EXPECT_FALSE(grouped({{2, 16, 3, 5, Order::nhwc}, 8, 34}));
  EXPECT_FALSE(grouped({{2, 18, 3, 5, Order::nhwc}, 8, 32}));
  EXPECT_FALSE(grouped({{2, 16, 3, 5, Order::nchw}, 1, 32}));
  SliceCase unlike{{2, 16, 3, 5, Order::nhwc}, 8, 32};
  cudnn::Slice slice = unlike.slice();
  slice.part.order = Order::nchw;
  EXPECT_FALSE((cudnn::IntoSlice<Value, Value>{slice, to.data(), from.data()}.grouped()));
}

/// Tests pooling over a map of 16 channels a pixel, with windows that overlap the map's edges.
template <class Value, class Argmax>
void expect_pools_in_groups(const View& x_view, const View& y_view,
                            const cudnn::PoolWindow& window_of_pool) {
  const std::uint32_t xs = x_view.elements(), ys = y_view.elements();
  const std::vector<float> eighths = exact_values({static_cast<std::int64_t>(xs)}, 2);
  const std::vector<Value> x(eighths.begin(), eighths.end());  // Eighths have ties.
  const std::vector<Value> dy = random<Value>(ys, 3);
  std::vector<Argmax> argmax(ys, 77), same = argmax, *used = &argmax;
  expect_groups_like_elements<Value>(ys, ys, [&](Value* to) {
    const cudnn::MaxPool<Value, Argmax> body{x_view, y_view,       window_of_pool,
                                             to,     used->data(), x.data()};
    used = &same;
    return body;
  });
  EXPECT_EQ(same, argmax);
  expect_groups_like_elements<Value>(xs, xs, [&](Value* to) {
    return cudnn::MaxPoolBackward<Value, Argmax>{x_view, y_view,        window_of_pool,
                                                 to,     argmax.data(), dy.data()};
  });
  expect_groups_like_elements<Value>(ys, ys, [&](Value* to) {
    return cudnn::AveragePool<Value>{x_view, y_view, window_of_pool, to, x.data()};
  });
  expect_groups_like_elements<Value>(xs, xs, [&](Value* to) {
    return cudnn::AveragePoolBackward<Value>{x_view, y_view, window_of_pool, to, dy.data()};
  });
}

TYPED_TEST(GpuGroups, OfAPool) {
  using Value = TypeParam;
  const View x{2, 16, 7, 6, Order::nhwc};
  const auto check = [&](const View& y, const cudnn::PoolWindow& window_of_pool) {
    expect_pools_in_groups<Value, std::uint8_t>(x, y, window_of_pool);
    expect_pools_in_groups<Value, std::uint16_t>(x, y, window_of_pool);
    expect_pools_in_groups<Value, std::uint32_t>(x, y, window_of_pool);
  };
  check({2, 16, 3, 3, Order::nhwc}, {3, 3, 2, 2, 0, 0});
  check({2, 16, 7, 6, Order::nhwc}, {3, 3, 1, 1, 1, 1});
  check({2, 16, 3, 3, Order::nhwc}, {2, 3, 3, 2, 1, 1});
  check({2, 16, 1, 1, Order::nchw}, {7, 6, 1, 1, 0, 0});  // The window is the whole map.
  std::vector<Value> to(2048);
  const auto grouped = [&](std::uint32_t channels, Order order) {
    const View view{2, channels, 7, 6, order};
    return cudnn::AveragePool<Value>{view, view, {3, 3, 1, 1, 1, 1}, to.data(), to.data()}
        .grouped();
  };
  EXPECT_TRUE(grouped(16, Order::nhwc));
  EXPECT_FALSE(grouped(18, Order::nhwc));
  EXPECT_FALSE(grouped(16, Order::nchw));
}

TYPED_TEST(GpuGroups, OfALocalResponseNormalisation) {
  using Value = TypeParam;
  for (const View& view : {View{2, 24, 3, 2, Order::nhwc}, View{3, 8, 1, 1, Order::nchw}}) {
    const std::uint32_t count = view.elements();
    const std::vector<Value> x = random<Value>(count, 2), dy = random<Value>(count, 3);
    for (const std::int32_t reach : {0, 2, 9}) {  // 9 reaches past the neighbouring groups.
      std::vector<float> scale(count), same = scale, *used = &scale;
      expect_groups_like_elements<Value>(count, count, [&](Value* to) {
        const cudnn::LrnForward<Value> body{view, reach, 0.3F,         0.75F,
                                            2.0F, to,    used->data(), x.data()};
        used = &same;
        return body;
      });
      expect_same_bits(same, scale);
      expect_groups_like_elements<Value>(count, count, [&](Value* to) {
        return cudnn::LrnBackward<Value>{view, reach,     0.4F,     0.75F,
                                         to,   dy.data(), x.data(), scale.data()};
      });
    }
  }
}

TEST(GpuGroupsOfWeights, AreUpdatedLikeElements) {
  const std::vector<float> gradient = random<float>(odd, 2);
  for (const bool nesterov : {false, true}) {
    for (const bool velocity : {false, true}) {
      std::vector<float> speed = random<float>(odd, 3), same = speed, *used = &speed;
      expect_groups_like_elements<float>(odd, odd, [&](float* to) {
        const cudnn::Sgd body{
            to, velocity ? used->data() : nullptr, gradient.data(), 0.1F, 0.9F, 0.01F, nesterov};
        used = &same;
        return body;
      });
      expect_same_bits(same, speed);
    }
  }
  std::vector<float> m = random<float>(odd, 3), m2 = m, v(odd, 0.5F), v2 = v;
  std::vector<float>*used_m = &m, *used_v = &v;
  expect_groups_like_elements<float>(odd, odd, [&](float* to) {
    const cudnn::Adam body{to,   used_m->data(), used_v->data(), gradient.data(), 0.1F,
                           1.1F, 0.9F,           0.99F,          1e-3F,           0.01F};
    used_m = &m2;
    used_v = &v2;
    return body;
  });
  expect_same_bits(m2, m);
  expect_same_bits(v2, v);
}

}  // namespace
}  // namespace duplex::test
