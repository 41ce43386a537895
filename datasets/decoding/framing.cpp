#include "datasets/decoding/framing.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/error.h"
#include "core/random.h"

namespace duplex::datasets {
namespace {

constexpr double least_ratio = 3.0 / 4.0, most_ratio = 4.0 / 3.0;

/// e^x, where |x| < 0.3. The last bits of the system's own function differ between systems.
double exponential(double x) {
  double sum = 1.0;
  for (int n = 16; n > 0; --n) sum = 1.0 + sum * x / n;
  return sum;
}

/// Rounds to the nearest whole number, and halves to the even one, as Python does.
int rounded(double value) {
  return static_cast<int>(std::nearbyint(value));
}

/// The largest box in the middle that has a ratio in the range.
Box central_box(ImageSize image) {
  Box box{0, 0, image.height, image.width};
  const double ratio = static_cast<double>(image.width) / image.height;
  if (ratio < least_ratio) box.height = rounded(image.width / least_ratio);
  if (ratio > most_ratio) box.width = rounded(image.height * most_ratio);
  box.top = (image.height - box.height) / 2;
  box.left = (image.width - box.width) / 2;
  return box;
}

}  // namespace

Framing squashed(ImageSize image, int height, int width) {
  return {{0, 0, image.height, image.width}, height, width, 0, 0};
}

Framing central(ImageSize image, int side, int height, int width) {
  Framing framing{{0, 0, image.height, image.width}, side, side, 0, 0};
  const std::int64_t scaled = std::int64_t{side} * std::max(image.width, image.height) /
                              std::min(image.width, image.height);
  if (scaled > max_image_pixels)
    throw Error("its " + std::to_string(image.width) + "x" + std::to_string(image.height) +
                " pixels are too long and narrow to scale the shorter side to " +
                std::to_string(side));
  (image.width <= image.height ? framing.height : framing.width) = static_cast<int>(scaled);
  framing.top = rounded((framing.height - height) / 2.0);
  framing.left = rounded((framing.width - width) / 2.0);
  return framing;
}

Box random_box(ImageSize image, const CropRange& range, std::uint64_t seed, std::uint64_t sample) {
  constexpr double log_ratio = 0.28768207245178096;  // That is log(4 / 3), and -log(3 / 4).
  constexpr std::uint64_t attempts = 10, draws = 4;
  const RandomStream stream(seed, stream_of("crop"));
  const double area = static_cast<double>(image.width) * image.height;
  for (std::uint64_t attempt = 0; attempt < attempts; ++attempt) {
    const std::uint64_t draw = (sample * attempts + attempt) * draws;
    const double uniform = double{stream.uniform(draw)};
    const double part = area * (range.least + (range.most - range.least) * uniform);
    const double ratio = exponential(log_ratio * (2.0 * double{stream.uniform(draw + 1)} - 1.0));
    const double width = std::nearbyint(std::sqrt(part * ratio));
    const double height = std::nearbyint(std::sqrt(part / ratio));
    if (width < 1.0 || width > image.width || height < 1.0 || height > image.height) continue;
    Box box{0, 0, static_cast<int>(height), static_cast<int>(width)};
    const auto down = static_cast<std::uint32_t>(image.height - box.height + 1);
    const auto right = static_cast<std::uint32_t>(image.width - box.width + 1);
    box.top = static_cast<int>(stream.below(draw + 2, down));
    box.left = static_cast<int>(stream.below(draw + 3, right));
    return box;
  }
  return central_box(image);
}

}  // namespace duplex::datasets
