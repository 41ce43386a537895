// Compares the parts of images that samples show with torchvision's: the boxes of random crops, the
// middle of an image, and the pixels that are made of them.
#include "datasets/decoding/framing.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "datasets/decoding/resample.h"
#include "datasets/decoding/scaled.h"
#include "tests/datasets/crops_recorded.h"
#include "tests/datasets/files.h"

namespace duplex::datasets {
namespace {

using testing::Bytes;

void expect_boxes(const std::vector<recorded::Crops>& expected, const CropRange& range) {
  for (const recorded::Crops& crops : expected) {
    for (std::size_t sample = 0; sample < crops.boxes.size(); ++sample) {
      const Box box = random_box({crops.width, crops.height}, range, recorded::crop_seed, sample);
      EXPECT_EQ((std::vector<int>{box.top, box.left, box.height, box.width}), crops.boxes[sample])
          << crops.width << "x" << crops.height << " sample " << sample;
    }
  }
}

TEST(Framing, RandomBoxesAreThoseOfTorchvision) {
  expect_boxes(recorded::usual_crops, {0.08, 1.0});
  expect_boxes(recorded::large_crops, {0.9, 1.0});
}

TEST(Framing, RandomBoxesLieInTheImageAndHaveTheAskedArea) {
  const ImageSize image{640, 480};
  const CropRange range{0.2, 0.5};
  double least = 1.0, most = 0.0;
  for (std::uint64_t sample = 0; sample < 2000; ++sample) {
    const Box box = random_box(image, range, 1, sample);
    ASSERT_GE(std::min(box.top, box.left), 0);
    ASSERT_LE(box.top + box.height, image.height);
    ASSERT_LE(box.left + box.width, image.width);
    const double area = static_cast<double>(box.height) * box.width / (640.0 * 480.0);
    least = std::min(least, area);
    most = std::max(most, area);
  }
  EXPECT_NEAR(least, 0.2, 0.01);
  EXPECT_NEAR(most, 0.5, 0.01);
}

TEST(Framing, TheMiddleIsThatOfTorchvision) {
  for (const std::vector<int>& each : recorded::centres) {
    const Framing framing = central({each[0], each[1]}, each[2], each[3], each[3]);
    EXPECT_EQ((std::vector<int>{framing.height, framing.width, framing.top, framing.left}),
              std::vector<int>(each.begin() + 4, each.end()))
        << each[0] << "x" << each[1];
    EXPECT_EQ(framing.part.height, each[1]);
    EXPECT_EQ(framing.part.width, each[0]);
  }
}

TEST(Framing, ImagesThatAreTooLongHaveNoMiddle) {
  const std::string error = testing::error_of([] { central({1 << 26, 1}, 256, 224, 224); });
  EXPECT_NE(error.find("too long and narrow"), std::string::npos) << error;
  const Framing framing = central({1 << 18, 1}, 256, 224, 224);
  EXPECT_EQ(framing.width, 1 << 26);
  // Its random boxes are in the middle, where no other fits.
  const Box box = random_box({1 << 26, 1}, {0.08, 1.0}, 1, 2);
  EXPECT_EQ(box.width, 1);
  EXPECT_EQ(box.left, ((1 << 26) - 1) / 2);
}

/// A level more or less may come from torchvision's rounding between its two passes.
void expect_pixels(const std::string& name, const Framing& framing) {
  const Bytes file = testing::recorded("source.png");
  const Image source = decode_image(file.data(), file.size(), 3);
  const testing::PlainImage expected = testing::read_ppm(name);
  const auto area = static_cast<std::size_t>(expected.width * expected.height);
  Bytes planes(3 * area);
  resample(planes.data(), expected.height, expected.width, source.pixels.get(), source.size, 3,
           framing);
  for (std::size_t i = 0; i < area; ++i)
    for (std::size_t c = 0; c < 3; ++c)
      ASSERT_NEAR(planes[c * area + i], expected.pixels[3 * i + c], 1) << name << " pixel " << i;
}

TEST(Framing, PixelsAreThoseOfTorchvision) {
  expect_pixels("cropped-24x24.ppm", {{9, 20, 33, 29}, 24, 24, 0, 0});
  expect_pixels("cropped-20x36.ppm", {{3, 40, 17, 21}, 20, 36, 0, 0});
  expect_pixels("central-24x24.ppm", central({61, 47}, 32, 24, 24));
}

/// A framing of the whole image is the same as none, and a part that is not scaled is copied.
TEST(Framing, OfPlanesAndOfFiles) {
  const testing::CountedDataset even(9, 3, {1, 3, 20, 24});
  Bytes pixels(3 * 20 * 24);
  even.read_framed(
      5, [](ImageSize size) { return squashed(size, 20, 24); }, pixels.data());
  EXPECT_EQ(pixels, Bytes(3 * 20 * 24, testing::CountedDataset::value(5)));

  TemporaryFolder folder;
  const Bytes file = testing::draw_png(50, 40, 7);
  testing::write_bytes(folder / "set/a/one.png", file);
  testing::write_bytes(folder / "set/b/two.png", testing::draw_png(50, 40, 8));
  DatasetOptions options;
  options.height = options.width = 16;
  const auto data = open_dataset(folder / "set", options);
  Bytes part(3 * 16 * 16);
  data->read_framed(
      0,
      [](ImageSize size) {
        EXPECT_EQ(size.width, 50);
        EXPECT_EQ(size.height, 40);
        return Framing{{11, 30, 16, 16}, 16, 16, 0, 0};
      },
      part.data());
  const Image image = decode_image(file.data(), file.size(), 3);
  for (std::size_t y = 0; y < 16; ++y)
    for (std::size_t x = 0; x < 16; ++x)
      for (std::size_t c = 0; c < 3; ++c)
        ASSERT_EQ(part[(c * 16 + y) * 16 + x],
                  image.pixels.get()[((11 + y) * 50 + 30 + x) * 3 + c]);
}

/// A data set that is scaled is framed by what its source has, here in grey for colour.
TEST(Framing, OfWhatIsScaled) {
  class Places : public testing::CountedDataset {
   public:
    Places() : CountedDataset(2, 1, {1, 1, 10, 12}) {}
    const std::uint8_t* read(std::size_t, std::uint8_t* scratch) const override {
      for (std::size_t i = 0; i < 120; ++i) scratch[i] = static_cast<std::uint8_t>(i);
      return scratch;
    }
  };
  const ScaledDataset scaled(std::make_shared<Places>(), {1, 3, 5, 6});
  Bytes part(3 * 5 * 6);
  const Framer framer = [](ImageSize size) {
    EXPECT_EQ(size.width, 12);
    EXPECT_EQ(size.height, 10);
    return Framing{{2, 3, 5, 6}, 5, 6, 0, 0};
  };
  scaled.read_framed(0, framer, part.data());
  for (std::size_t i = 0; i < part.size(); ++i)
    EXPECT_EQ(part[i], 12 * (2 + i % 30 / 6) + 3 + i % 6) << i;
}

}  // namespace
}  // namespace duplex::datasets
