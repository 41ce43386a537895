// Tests what training draws for each image, moves and crops: by the number of the sample alone,
// whatever reads it.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "core/random.h"
#include "datasets/decoding/resample.h"
#include "datasets/loader.h"
#include "tests/datasets/files.h"

namespace duplex::datasets {
namespace {

using testing::all_of;
using testing::Bytes;
using testing::CountedDataset;

constexpr std::size_t height = 10, width = 12, area = height * width;

/// All pixels of an image differ, and none is black: the pixel at (y, x) is 1 + 12 y + x.
class Places : public CountedDataset {
 public:
  Places() : CountedDataset(32, 4, {1, 1, height, width}) {}
  const std::uint8_t* read(std::size_t, std::uint8_t* scratch) const override {
    for (std::size_t i = 0; i < area; ++i) scratch[i] = static_cast<std::uint8_t>(1 + i);
    return scratch;
  }
};

/// Pixels come through as they are, but for a factor.
LoaderOptions plain(const Share& share) {
  LoaderOptions options;
  options.share = share;
  options.seed = 5;
  options.threads = 0;
  options.normalisation = {{0.0F}, {1.0F}};
  return options;
}

/// The levels of the samples of so many steps, one after the other.
Bytes levels(const LoaderOptions& options, int steps = 1) {
  BatchLoader loader(all_of(std::make_shared<Places>()), options);
  Bytes found;
  for (int step = 0; step < steps; ++step) {
    const Batch& batch = loader.next();
    for (std::size_t i = 0; i < area * static_cast<std::size_t>(options.share.count); ++i)
      found.push_back(static_cast<std::uint8_t>(batch.pixels[i] * 255.0F + 0.5F));
  }
  return found;
}

/// Sample n is moved by what RandomStream(5, stream_of("pad")) gives under 2n and 2n + 1, as a crop
/// of the image with a black margin.
TEST(Augmentation, MovesByTheNumberOfTheSample) {
  LoaderOptions options = plain(join_share(32));
  options.pad = 4;
  const Bytes found = levels(options, 2);
  const RandomStream draws(5, stream_of("pad"));
  std::vector<int> moves(9);
  for (std::size_t sample = 0; sample < 64; ++sample) {
    const int down = static_cast<int>(draws.below(2 * sample, 9)) - 4;
    const int right = static_cast<int>(draws.below(2 * sample + 1, 9)) - 4;
    ++moves[static_cast<std::size_t>(down + 4)];
    for (int y = 0; y < 10; ++y)
      for (int x = 0; x < 12; ++x) {
        const int from_y = y + down, from_x = x + right;
        const bool there = from_y >= 0 && from_y < 10 && from_x >= 0 && from_x < 12;
        ASSERT_EQ(found[sample * area + static_cast<std::size_t>(12 * y + x)],
                  there ? 1 + 12 * from_y + from_x : 0)
            << "sample " << sample << " (" << y << ", " << x << ")";
      }
  }
  EXPECT_EQ(std::count(moves.begin(), moves.end(), 0), 0);
}

TEST(Augmentation, CropsByTheNumberOfTheSample) {
  LoaderOptions options = plain(join_share(32));
  options.crop = {0.3, 0.8};
  const Bytes found = levels(options, 2);
  Bytes image(area);
  Places().read(0, image.data());
  for (std::size_t sample = 0; sample < 64; ++sample) {
    const ImageSize size{width, height};
    const Framing framing{random_box(size, options.crop, 5, sample), height, width, 0, 0};
    Bytes expected(area);
    resample(expected.data(), height, width, image.data(), size, 1, framing);
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(),
                           found.begin() + static_cast<std::ptrdiff_t>(sample * area)))
        << "sample " << sample;
  }
}

/// The options of all that is drawn, with crops or with moves, which exclude each other.
std::vector<LoaderOptions> drawn(const Share& share) {
  LoaderOptions crops = plain(share), moves = crops;
  crops.mirror = moves.mirror = true;
  crops.crop = {0.08, 1.0};
  moves.pad = 3;
  return {crops, moves};
}

TEST(Augmentation, ThreadsStepsAndRanksChangeNothing) {
  for (std::size_t i = 0; i < 2; ++i) {
    const Bytes expected = levels(drawn(join_share(16))[i], 6);
    for (const int threads : {1, 2, 8}) {
      LoaderOptions options = drawn(join_share(16))[i];
      options.threads = threads;
      options.ahead = 3;
      EXPECT_EQ(levels(options, 6), expected) << threads << " threads";
    }
    LoaderOptions later = drawn(join_share(16))[i];
    later.first_step = 4;
    EXPECT_EQ(levels(later, 2), Bytes(expected.begin() + 4 * 16 * area, expected.end()));
    // Two ranks of 8 take the halves of each step.
    const Bytes parts[] = {levels(drawn(join_share(8, 0, 2))[i], 6),
                           levels(drawn(join_share(8, 1, 2))[i], 6)};
    Bytes together;
    for (std::ptrdiff_t step = 0; step < 6; ++step)
      for (const Bytes& part : parts)
        together.insert(together.end(), part.begin() + step * 8 * area,
                        part.begin() + (step + 1) * 8 * area);
    EXPECT_EQ(together, expected);
    LoaderOptions other = drawn(join_share(16))[i];
    other.seed = 6;
    EXPECT_NE(levels(other, 6), expected);
  }
}

/// In another epoch the same image is drawn for anew.
TEST(Augmentation, EveryEpochDrawsAnew) {
  for (const LoaderOptions& options : drawn(join_share(32))) {
    const Bytes found = levels(options, 2);
    const auto half = found.begin() + 32 * area;
    EXPECT_FALSE(std::equal(found.begin(), half, half));
  }
}

TEST(Augmentation, TestsAreNotDrawnFor) {
  LoaderOptions bare = plain(join_share(8));
  bare.pass = Pass::evaluation;
  const Bytes expected = levels(bare, 4);
  for (LoaderOptions options : drawn(join_share(8))) {
    options.pass = Pass::evaluation;
    EXPECT_EQ(levels(options, 4), expected);
  }
}

TEST(Augmentation, TestsTakeTheMiddleIfAsked) {
  LoaderOptions options = plain(join_share(8));
  options.pass = Pass::evaluation;
  options.test_side = 15;
  const Bytes found = levels(options);
  Bytes image(area), expected(area);
  Places().read(0, image.data());
  const ImageSize size{width, height};
  resample(expected.data(), height, width, image.data(), size, 1, central(size, 15, height, width));
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), found.begin()));
  options.pass = Pass::training;
  EXPECT_TRUE(std::equal(image.begin(), image.end(), levels(options).begin()));
}

}  // namespace
}  // namespace duplex::datasets
