#include "core/shape.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace duplex {
namespace {

TEST(Shape, KnowsItsExtents) {
  const Shape shape = {64, 3, 7, 5};
  EXPECT_EQ(shape.rank(), 4);
  EXPECT_EQ(shape.elements(), 64 * 3 * 7 * 5);
  EXPECT_EQ(shape[0], 64);
  EXPECT_EQ(shape[3], 5);
  EXPECT_EQ(shape.n(), 64);
  EXPECT_EQ(shape.c(), 3);
  EXPECT_EQ(shape.h(), 7);
  EXPECT_EQ(shape.w(), 5);
  EXPECT_EQ(shape.str(), "64x3x7x5");
}

TEST(Shape, LacksAxesOfExtentOne) {
  const Shape shape = {32, 10};
  EXPECT_EQ(shape.n(), 32);
  EXPECT_EQ(shape.c(), 10);
  EXPECT_EQ(shape.h(), 1);
  EXPECT_EQ(shape.w(), 1);
  EXPECT_EQ(shape.str(), "32x10");
}

TEST(Shape, OfRankZeroHoldsOneElement) {
  const Shape scalar;
  EXPECT_EQ(scalar.rank(), 0);
  EXPECT_EQ(scalar.elements(), 1);
  EXPECT_EQ(scalar.str(), "scalar");
}

TEST(Shape, WithAnEmptyExtentHoldsNone) {
  EXPECT_EQ((Shape{4, 0, 3}).elements(), 0);
}

TEST(Shape, ComparesRankAndExtents) {
  EXPECT_EQ((Shape{2, 3}), (Shape{2, 3}));
  EXPECT_NE((Shape{2, 3}), (Shape{3, 2}));
  EXPECT_NE((Shape{2, 3}), (Shape{2, 3, 1}));
  EXPECT_NE((Shape{0}), Shape());
}

TEST(Shape, LargerThanMemoryDoesNotOverflow) {
  EXPECT_EQ((Shape{1 << 20, 1 << 20, 4}).elements(), std::int64_t{1} << 42);
}

TEST(Shape, RefusesWhatIsNoShape) {
  EXPECT_THROW((Shape{1, 2, 3, 4, 5}), Error);
  EXPECT_THROW((Shape{1, -1}), Error);
}

}  // namespace
}  // namespace duplex
