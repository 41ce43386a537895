// Compares scaling with Pillow's recorded results and with what holds for any filter of this kind.
#include "datasets/decoding/resample.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/random.h"
#include "datasets/decoding/image.h"
#include "tests/datasets/files.h"

namespace duplex::datasets {
namespace {

using testing::Bytes;

Bytes noise(std::size_t count) {
  const RandomStream random(1, 2);
  Bytes bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::uint8_t>(random.bits(i));
  return bytes;
}

TEST(Resample, EqualsPillow) {
  const Bytes file = testing::recorded("source.png");
  const Image source = decode_image(file.data(), file.size(), 3);
  for (const char* name :
       {"scaled-24x24.ppm", "scaled-61x20.ppm", "scaled-90x64.ppm", "scaled-7x47.ppm"}) {
    const testing::PlainImage expected = testing::read_ppm(name);
    const auto area = static_cast<std::size_t>(expected.width * expected.height);
    Bytes planes(3 * area);
    resample(planes.data(), expected.height, expected.width, source.pixels.get(),
             source.size.height, source.size.width, 3);
    for (std::size_t i = 0; i < area; ++i) {
      for (std::size_t c = 0; c < 3; ++c) {
        // Pillow rounds to whole levels between its two passes too.
        ASSERT_NEAR(planes[c * area + i], expected.pixels[3 * i + c], 1) << name << " pixel " << i;
      }
    }
  }
}

TEST(Resample, AtItsOwnSizeAnImageStaysAsItIs) {
  const Bytes from = noise(31 * 17 * 3);
  Bytes to(from.size());
  resample(to.data(), 17, 31, from.data(), 17, 31, 3);
  for (std::size_t i = 0; i < 31 * 17; ++i) {
    for (std::size_t c = 0; c < 3; ++c) EXPECT_EQ(to[c * 31 * 17 + i], from[3 * i + c]);
  }
}

TEST(Resample, AnEvenColourStaysAsItIs) {
  const Bytes from(97 * 61, 173);
  for (const auto& [height, width] : {std::pair{1, 1}, {224, 224}, {13, 400}, {96, 98}}) {
    Bytes to(static_cast<std::size_t>(height * width));
    resample(to.data(), height, width, from.data(), 61, 97, 1);
    for (std::uint8_t value : to) ASSERT_EQ(value, 173) << height << "x" << width;
  }
}

TEST(Resample, AWholeNumberOfTimesSmallerIsAWeightedMeanOfEveryPixel) {
  // Four pixels become one: their centres lie at 0.5 ... 3.5 around 2; the triangle's radius is 4.
  const Bytes from{10, 200, 60, 90};
  std::uint8_t to = 0;
  resample(&to, 1, 1, from.data(), 1, 4, 1);
  const double weights[] = {2.5, 3.5, 3.5, 2.5};
  double expected = 0;
  for (std::size_t i = 0; i < 4; ++i) expected += weights[i] * from[i] / 12;
  EXPECT_NEAR(to, expected, 0.51);
}

TEST(Resample, KeepsTheMeanOfAVeryLongRow) {
  const Bytes from = noise(60000);
  std::uint8_t to = 0;
  resample(&to, 1, 1, from.data(), 1, 60000, 1);
  double sum = 0, total = 0;
  for (int i = 0; i < 60000; ++i) {
    const double weight = 60000 - std::abs(i + 0.5 - 30000);
    sum += weight * from[static_cast<std::size_t>(i)];
    total += weight;
  }
  EXPECT_NEAR(to, sum / total, 1.5);
}

TEST(Resample, GreyEqualsEachChannelOfColour) {
  const Bytes grey = noise(40 * 30);
  Bytes colour;
  for (std::uint8_t value : grey) colour.insert(colour.end(), 3, value);
  Bytes from_grey(20 * 11), from_colour(3 * 20 * 11);
  resample(from_grey.data(), 11, 20, grey.data(), 30, 40, 1);
  resample(from_colour.data(), 11, 20, colour.data(), 30, 40, 3);
  for (std::size_t i = 0; i < from_colour.size(); ++i) {
    EXPECT_EQ(from_colour[i], from_grey[i % from_grey.size()]);
  }
}

}  // namespace
}  // namespace duplex::datasets
