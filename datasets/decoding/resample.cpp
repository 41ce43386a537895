#include "datasets/decoding/resample.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <vector>

namespace duplex::datasets {
namespace {

constexpr int weight_bits = 14;  ///< A weight of 1 is 2^14, so weights fit 16 bits signed.
constexpr int between_bits = 7;  ///< Fraction bits kept between the two passes: 255 * 2^7 < 2^15.

/// Lists for each target position which source positions count, and by how much.
struct Taps {
  struct Range {
    int first, count;
    std::size_t weights;  ///< Index in `weights` of the range's first.
  };
  std::vector<Range> ranges;
  std::vector<std::int16_t> weights;
};

/// The taps of `count` target positions from `begin` on, where `from` source positions become `to`.
Taps make_taps(int from, int to, int begin, int count) {
  Taps taps;
  // In units of 1 / (2 to) source pixels the centre of source pixel k lies at (2k + 1) to, that of
  // target pixel x at (2x + 1) from, and the triangle reaches 2 max(from, to) to either side.
  const std::int64_t reach = 2 * std::int64_t{std::max(from, to)};
  std::vector<std::int64_t> raw;
  for (std::int64_t x = begin; x < begin + count; ++x) {
    const std::int64_t centre = (2 * x + 1) * from;
    const auto first =
        std::max<std::int64_t>(0, (centre - reach - to) / (2 * std::int64_t{to}) - 1);
    raw.clear();
    std::int64_t start = first, sum = 0;
    for (std::int64_t k = first; k < from; ++k) {
      const std::int64_t distance = std::abs((2 * k + 1) * to - centre);
      if (distance >= reach) {
        if (!raw.empty()) break;
        start = k + 1;
        continue;
      }
      raw.push_back(reach - distance);
      sum += reach - distance;
    }
    taps.ranges.push_back(
        {static_cast<int>(start), static_cast<int>(raw.size()), taps.weights.size()});
    // The running sum is rounded, not each weight, so that the weights add up to exactly 1 and an
    // even colour stays what it is.
    std::int64_t running = 0, before = 0;
    for (std::int64_t weight : raw) {
      running += weight;
      const std::int64_t rounded = ((running << (weight_bits + 1)) + sum) / (2 * sum);
      taps.weights.push_back(static_cast<std::int16_t>(rounded - before));
      before = rounded;
    }
  }
  return taps;
}

/// Adds weight * row to sum, element by element.
void accumulate(std::int32_t* sum, const std::uint8_t* row, std::int16_t weight,
                std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    sum[i] += std::int32_t{weight} * static_cast<std::int16_t>(row[i]);
  }
}

template <int channels>
void scale_row(std::uint8_t* to, std::size_t plane, const std::int16_t* row, const Taps& taps) {
  for (const Taps::Range& range : taps.ranges) {
    std::int32_t sum[channels] = {};
    const std::int16_t* weights = taps.weights.data() + range.weights;
    const std::int16_t* pixel = row + static_cast<std::ptrdiff_t>(range.first) * channels;
    for (int k = 0; k < range.count; ++k, pixel += channels) {
      for (int c = 0; c < channels; ++c) sum[c] += std::int32_t{weights[k]} * pixel[c];
    }
    constexpr int shift = weight_bits + between_bits;
    for (int c = 0; c < channels; ++c) {
      to[static_cast<std::size_t>(c) * plane] =
          static_cast<std::uint8_t>((sum[c] + (1 << (shift - 1))) >> shift);
    }
    ++to;
  }
}

}  // namespace

void resample(std::uint8_t* to, int height, int width, const std::uint8_t* from, ImageSize image,
              int channels, const Framing& framing) {
  const Box& part = framing.part;
  const Taps down = make_taps(part.height, framing.height, framing.top, height);
  const Taps across = make_taps(part.width, framing.width, framing.left, width);
  const auto depth = static_cast<std::size_t>(channels);
  const std::size_t image_row = static_cast<std::size_t>(image.width) * depth;
  const std::size_t part_row = static_cast<std::size_t>(part.width) * depth;
  from +=
      static_cast<std::size_t>(part.top) * image_row + static_cast<std::size_t>(part.left) * depth;
  const auto plane = static_cast<std::size_t>(height) * static_cast<std::size_t>(width);
  std::vector<std::int32_t> sum(part_row);
  std::vector<std::int16_t> row(part_row);
  for (const Taps::Range& range : down.ranges) {
    constexpr int shift = weight_bits - between_bits;
    std::fill(sum.begin(), sum.end(), 1 << (shift - 1));
    for (int k = 0; k < range.count; ++k) {
      accumulate(sum.data(), from + static_cast<std::size_t>(range.first + k) * image_row,
                 down.weights[range.weights + static_cast<std::size_t>(k)], part_row);
    }
    for (std::size_t i = 0; i < part_row; ++i) row[i] = static_cast<std::int16_t>(sum[i] >> shift);
    if (channels == 1) {
      scale_row<1>(to, plane, row.data(), across);
    } else {
      scale_row<3>(to, plane, row.data(), across);
    }
    to += width;
  }
}

void resample(std::uint8_t* to, int height, int width, const std::uint8_t* from, int from_height,
              int from_width, int channels) {
  const ImageSize image{from_width, from_height};
  resample(to, height, width, from, image, channels, squashed(image, height, width));
}

}  // namespace duplex::datasets
