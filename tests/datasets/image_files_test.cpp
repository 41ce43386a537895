// Tests images that are read by their paths, and those that are written.
#include "datasets/image_files.h"

#include <gtest/gtest.h>

#include <random>

#include "datasets/decoding/image.h"
#include "datasets/decoding/png.h"
#include "tests/datasets/files.h"

namespace duplex::datasets {
namespace {

using testing::draw_png;
using testing::error_of;
using testing::recorded;
using testing::write_bytes;

TEST(ImageFiles, AreReadAsThoseOfAFolder) {
  const TemporaryFolder folder;
  write_bytes(folder / "one/a.jpg", recorded("large.jpg"));
  write_bytes(folder / "one/b.png", draw_png(33, 70, 2));
  write_bytes(folder / "two/c.jpg", recorded("grey.jpg"));
  for (const int channels : {1, 3}) {
    DatasetOptions options;
    options.channels = channels;
    options.height = 20;
    options.width = 24;
    const auto data = open_dataset(folder.path(), options);
    const ImageFiles files({folder / "one/a.jpg", folder / "one/b.png", folder / "two/c.jpg"},
                           {1, channels, 20, 24});
    ASSERT_EQ(files.size(), data->size());
    std::vector<std::uint8_t> a(data->sample_bytes()), b(data->sample_bytes());
    for (std::size_t i = 0; i < files.size(); ++i) {
      const std::uint8_t* given = files.read(i, a.data());
      const std::uint8_t* trained = data->read(i, b.data());
      EXPECT_TRUE(std::equal(given, given + a.size(), trained)) << i;
    }
  }
}

TEST(ImageFiles, SayWhyOneCannotBeRead) {
  const TemporaryFolder folder;
  write_bytes(folder / "empty.png", {});
  const ImageFiles files({folder / "empty.png", folder / "none.png", folder.path()}, {1, 3, 8, 8});
  std::vector<std::uint8_t> scratch(files.sample_bytes());
  const auto why = [&](std::size_t i) { return error_of([&] { files.read(i, scratch.data()); }); };
  EXPECT_NE(why(0).find("empty"), std::string::npos);
  EXPECT_NE(why(1).find("No such file"), std::string::npos);
  EXPECT_NE(why(2).find("folder"), std::string::npos);
}

/// stb_image reads what is written, pixel by pixel.
TEST(Png, HasThePixelsThatWereGiven) {
  std::mt19937 random(7);
  for (const int channels : {1, 3})
    for (const auto& [height, width] : {std::pair(1, 1), std::pair(28, 28), std::pair(7, 250)}) {
      const std::size_t area = static_cast<std::size_t>(height * width);
      std::vector<std::uint8_t> planes(static_cast<std::size_t>(channels) * area);
      for (std::uint8_t& value : planes) value = static_cast<std::uint8_t>(random());
      const std::vector<std::uint8_t> file =
          encode_png(planes.data(), {1, channels, height, width});
      const Image image = decode_image(file.data(), file.size(), channels);
      ASSERT_EQ(image.size.height, height);
      ASSERT_EQ(image.size.width, width);
      for (std::size_t i = 0; i < area; ++i)
        for (std::size_t c = 0; c < static_cast<std::size_t>(channels); ++c)
          ASSERT_EQ(image.pixels.get()[i * static_cast<std::size_t>(channels) + c],
                    planes[c * area + i]);
    }
}

}  // namespace
}  // namespace duplex::datasets
