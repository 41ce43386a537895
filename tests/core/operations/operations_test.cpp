// Tests the shapes that follow from specs.
#include "core/operations.h"

#include <gtest/gtest.h>

#include <string>

#include "core/error.h"

namespace duplex::test {
namespace {

TEST(Window, OutputExtents) {
  const Window resnet = {7, 7, 2, 2, {3, 3, 3, 3}};
  EXPECT_EQ(resnet.output_height(224), 112);
  EXPECT_EQ(resnet.output_width(225), 113);
  const Window same = {3, 3, 2, 2, {0, 0, 1, 1}};
  EXPECT_EQ(same.output_height(112), 56);
  const Window floor = {3, 2, 2, 3, {}};
  EXPECT_EQ(floor.output_height(8), 3);  // the last row is left out
  EXPECT_EQ(floor.output_width(8), 3);
  const Window whole = {5, 5, 1, 1, {}};
  EXPECT_EQ(whole.output_height(5), 1);
}

TEST(Window, RefusesToOverhang) {
  const Window window = {7, 7, 2, 2, {1, 0, 1, 0}};
  EXPECT_EQ(window.output_height(5), 1);
  EXPECT_THROW(window.output_height(4), Error);
  EXPECT_THROW(window.output_width(6), Error);
  try {
    window.output_height(4);
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("window of 7"), std::string::npos) << message;
    EXPECT_NE(message.find("map of 4"), std::string::npos) << message;
  }
}

TEST(Window, RefusesNonsense) {
  EXPECT_THROW((Window{0, 1, 1, 1, {}}.output_height(4)), Error);
  EXPECT_THROW((Window{1, 1, 0, 1, {}}.output_height(4)), Error);
  EXPECT_THROW((Window{1, 1, 1, 1, {-1, 0, 0, 0}}.output_height(4)), Error);
}

TEST(OperationShapes, Convolution) {
  ConvSpec spec;
  spec.filters = 256;
  spec.groups = 2;
  spec.window = {5, 5, 1, 1, {2, 2, 2, 2}};
  EXPECT_EQ(weights_shape(spec, {3, 96, 27, 27}), (Shape{256, 48, 5, 5}));
  EXPECT_EQ(output_shape(spec, {3, 96, 27, 27}), (Shape{3, 256, 27, 27}));
  EXPECT_THROW(output_shape(spec, {3, 95, 27, 27}), Error);
  EXPECT_THROW(output_shape(spec, {3, 96}), Error);
}

TEST(OperationShapes, Linear) {
  LinearSpec spec;
  spec.outputs = 10;
  EXPECT_EQ(weights_shape(spec, {2, 50, 4, 4}), (Shape{10, 800}));
  EXPECT_EQ(output_shape(spec, {2, 50, 4, 4}), (Shape{2, 10}));
  EXPECT_EQ(weights_shape(spec, {2, 7}), (Shape{10, 7}));
}

TEST(OperationShapes, Channels) {
  EXPECT_EQ(concat_shape({{2, 3, 4, 5}, {2, 6, 4, 5}}), (Shape{2, 9, 4, 5}));
  EXPECT_EQ(concat_shape({{2, 3}, {2, 4}}), (Shape{2, 7}));
  EXPECT_THROW(concat_shape({{2, 3, 4, 5}, {2, 3}}), Error);
  EXPECT_EQ(pad_channels_shape(128, {2, 64, 7, 7}), (Shape{2, 128, 7, 7}));
  EXPECT_THROW(pad_channels_shape(63, {2, 64, 7, 7}), Error);
}

}  // namespace
}  // namespace duplex::test
