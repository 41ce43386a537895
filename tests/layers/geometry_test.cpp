// Compares windows as models write them with TensorFlow's rule for "same" padding.
#include "layers/kinds/geometry.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace duplex {
namespace {

Shape map(std::int64_t height, std::int64_t width) {
  return {1, 3, height, width};
}

/// Returns the least padding with which windows at 0, stride, 2 * stride, ... up to the last one
/// that begins on the map reach every element. It counts, rather than calculate by the formula.
std::int64_t least_padding(std::int64_t in, std::int64_t kernel, std::int64_t stride) {
  std::int64_t reach = 0;
  for (std::int64_t start = 0; start < in; start += stride) reach = start + kernel;
  return reach > in ? reach - in : 0;
}

TEST(Geometry, SameGivesAMapOfOneOutputForEveryStride) {
  for (std::int64_t in = 1; in <= 40; ++in) {
    for (std::int64_t kernel = 1; kernel <= 7; ++kernel) {
      for (std::int64_t stride = 1; stride <= 4; ++stride) {
        SCOPED_TRACE("in " + std::to_string(in) + " window " + std::to_string(kernel) + " stride " +
                     std::to_string(stride));
        const Window window = same(kernel, stride).window(map(in, 2 * in));
        EXPECT_EQ(window.output_height(in), (in + stride - 1) / stride);
        EXPECT_EQ(window.output_width(2 * in), (2 * in + stride - 1) / stride);
        const Padding& padding = window.padding;
        EXPECT_EQ(padding.top + padding.bottom, least_padding(in, kernel, stride));
        EXPECT_EQ(padding.left + padding.right, least_padding(2 * in, kernel, stride));
        // An odd row is at the bottom, an odd column at the right.
        EXPECT_EQ(padding.bottom - padding.top, (padding.top + padding.bottom) % 2);
        EXPECT_EQ(padding.right - padding.left, (padding.left + padding.right) % 2);
      }
    }
  }
}

TEST(Geometry, SamePadsTheFirstConvolutionOfGoogLeNetUnevenly) {
  const Padding padding = same(7, 2).window(map(224, 224)).padding;
  EXPECT_EQ(padding.top, 2);
  EXPECT_EQ(padding.left, 2);
  EXPECT_EQ(padding.bottom, 3);
  EXPECT_EQ(padding.right, 3);
}

TEST(Geometry, ValidDropsWindowsThatDoNotFit) {
  const Window window = valid(3, 2).window(map(55, 14));
  EXPECT_EQ(window.output_height(55), 27);
  EXPECT_EQ(window.output_width(14), 6);
  EXPECT_EQ(window.padding.bottom, 0);
  EXPECT_EQ(window.padding.right, 0);
  EXPECT_THROW(valid(5).window(map(4, 9)).output_height(4), Error);
}

TEST(Geometry, PaddedAddsTheSameOnAllSides) {
  const Window window = padded(11, 4, 2).window(map(224, 224));
  EXPECT_EQ(window.output_height(224), 55);
  EXPECT_EQ(window.padding.top, 2);
  EXPECT_EQ(window.padding.left, 2);
  EXPECT_EQ(window.padding.bottom, 2);
  EXPECT_EQ(window.padding.right, 2);
}

TEST(Geometry, WholeMapIsOneWindow) {
  const Window window = whole_map().window(map(7, 5));
  EXPECT_EQ(window.height, 7);
  EXPECT_EQ(window.width, 5);
  EXPECT_EQ(window.output_height(7), 1);
  EXPECT_EQ(window.output_width(5), 1);
}

TEST(Geometry, PrintsAsTheThesisDoes) {
  EXPECT_EQ(same(7, 2).str(map(224, 224)), "7x7/2");
  EXPECT_EQ(whole_map().str(map(7, 7)), "7x7/1");
}

TEST(Geometry, RefusesAStrideOfZero) {
  EXPECT_THROW(same(3, 0).window(map(8, 8)).output_height(8), Error);
  EXPECT_THROW(valid(3, 0).window(map(8, 8)).output_height(8), Error);
}

}  // namespace
}  // namespace duplex
