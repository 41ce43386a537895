// Right and wrong solutions of exercise 1.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "course/01_convolution/check.h"
#include "tests/course/checked.h"

namespace duplex::course {
namespace {

using exercise::ConvShape;
using test::expect_right;
using test::expect_wrong;

constexpr Convolve* right = products_convolution;

std::size_t outputs(const ConvShape& s) {
  return static_cast<std::size_t>(s.images * s.filters * s.out_height() * s.out_width());
}

TEST(CourseConvolution, TheProductsOwnIsRight) {
  const Exercise exercise = convolution_exercise(right);
  expect_right(exercise);
  EXPECT_EQ(exercise.figures[0].measure(), 64.0 * 64 * 9 * 56 * 56);
  EXPECT_GT(exercise.figures[1].measure(), 0.0);
}

TEST(CourseConvolution, TheStubIsNotWritten) {
  expect_wrong(convolution_exercise(exercise::convolve), "one weight",
               "convolve() is not written yet");
}

TEST(CourseConvolution, YIsOverwritten) {
  const auto adds = [](const ConvShape& s, const float* x, const float* w, const float* b,
                       float* y) {
    std::vector<float> result(outputs(s));
    right(s, x, w, b, result.data());
    for (std::size_t i = 0; i < result.size(); ++i) y[i] += result[i];
  };
  expect_wrong(convolution_exercise(adds), "one weight", "y[0][0][0][0] is nan, expected");
}

TEST(CourseConvolution, TheBiasCounts) {
  const auto without = [](const ConvShape& s, const float* x, const float* w, const float*,
                          float* y) {
    const std::vector<float> none(static_cast<std::size_t>(s.filters));
    right(s, x, w, none.data(), y);
  };
  expect_wrong(convolution_exercise(without), "one weight", "wrong: 12 of 12 values");
}

TEST(CourseConvolution, RowsAndColumnsOfAFilterAreNotExchanged) {
  const auto turned = [](const ConvShape& s, const float* x, const float* w, const float* b,
                         float* y) {
    std::vector<float> other;
    const std::int64_t k = s.window;
    for (std::int64_t i = 0; i < s.filters * s.channels; ++i)
      for (std::int64_t ky = 0; ky < k; ++ky)
        for (std::int64_t kx = 0; kx < k; ++kx) other.push_back(w[(i * k + kx) * k + ky]);
    right(s, x, other.data(), b, y);
  };
  expect_wrong(convolution_exercise(turned), "3x3 on a map", "y[0][0][0][0] is");
}

TEST(CourseConvolution, ChannelsAreAddedUp) {
  const auto one = [](const ConvShape& s, const float* x, const float* w, const float* b,
                      float* y) {
    ConvShape single = s;
    single.channels = 1;
    right(single, x, w, b, y);
  };
  expect_wrong(convolution_exercise(one), "three channels", "y[0]");
}

TEST(CourseConvolution, EveryImageCounts) {
  const auto first = [](const ConvShape& s, const float* x, const float* w, const float* b,
                        float* y) {
    ConvShape single = s;
    single.images = 1;
    right(single, x, w, b, y);
  };
  expect_wrong(convolution_exercise(first), "two images", "y[1][0][0][0] is nan");
}

/// Reads what lies around the map instead of zeros.
void without_padding(const ConvShape& s, const float* x, const float* w, const float* b, float* y) {
  if (s.images > 1 || s.channels > 1 || s.filters > 1 || s.stride > 1) return right(s, x, w, b, y);
  for (std::int64_t oy = 0; oy < s.out_height(); ++oy)
    for (std::int64_t ox = 0; ox < s.out_width(); ++ox) {
      float sum = b[0];
      for (std::int64_t ky = 0; ky < s.window; ++ky)
        for (std::int64_t kx = 0; kx < s.window; ++kx)
          sum += w[ky * s.window + kx] * x[(oy + ky) * s.width + ox + kx];
      y[oy * s.out_width() + ox] = sum;
    }
}

TEST(CourseConvolution, WhatIsReadBehindTheMapIsNoticed) {
  expect_wrong(convolution_exercise(without_padding), "a padding of 1",
               "convolve() touched memory 1 element beyond the end of x");
}

TEST(CourseConvolution, TheStrideCounts) {
  const auto ignores = [](const ConvShape& s, const float* x, const float* w, const float* b,
                          float* y) {
    if (s.stride == 1) return right(s, x, w, b, y);
    ConvShape dense = s;
    dense.stride = 1;
    std::vector<float> all(outputs(dense));
    right(dense, x, w, b, all.data());
    std::copy(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(outputs(s)), y);
  };
  expect_wrong(convolution_exercise(ignores), "a stride of 2", "y[0][0][0][1] is");
}

TEST(CourseConvolution, InputsAreOnlyRead) {
  const auto changes = [](const ConvShape& s, const float* x, const float* w, const float* b,
                          float* y) {
    const_cast<float*>(w)[0] = 1.0F;
    right(s, x, w, b, y);
  };
  expect_wrong(convolution_exercise(changes), "one weight", "in w, which is only to be read");
}

TEST(CourseConvolution, NothingIsWrittenBesideY) {
  const auto behind = [](const ConvShape& s, const float* x, const float* w, const float* b,
                         float* y) {
    right(s, x, w, b, y);
    y[outputs(s)] = 0.0F;
  };
  expect_wrong(convolution_exercise(behind), "one weight", "1 element beyond the end of y");
  const auto before = [](const ConvShape& s, const float* x, const float* w, const float* b,
                         float* y) {
    right(s, x, w, b, y);
    y[-1] = 0.0F;
  };
  expect_wrong(convolution_exercise(before), "one weight", "wrote before the beginning of y");
}

}  // namespace
}  // namespace duplex::course
