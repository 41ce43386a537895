// Decides which part of an image a sample shows.
#pragma once
#include <cstdint>
#include <functional>

#include "datasets/decoding/image.h"

namespace duplex::datasets {

/// A part of an image, in its pixels.
struct Box {
  int top = 0, left = 0;
  int height = 0, width = 0;
};

/// A sample is made of an image by scaling `part` to `height` x `width`, of which it is the window
/// of its own size that begins at (top, left).
struct Framing {
  Box part;
  int height = 0, width = 0;
  int top = 0, left = 0;
};

/// Chooses the framing of an image by its size.
using Framer = std::function<Framing(ImageSize image)>;

/// The whole image, squashed to the sample's size.
Framing squashed(ImageSize image, int height, int width);

/// The middle of the image, after its shorter side is scaled to `side`, as torchvision's
/// Resize(side) and CenterCrop have it. `side` is `height` and `width` at least.
/// Throws Error with the reason alone for an image that is so long that it would become too large.
Framing central(ImageSize image, int side, int height, int width);

/// The parts of an image's area that random crops have, from `least` to `most`, up to 1.
struct CropRange {
  double least = 0.0, most = 0.0;  ///< 0: there are no crops.

  bool any() const { return most > 0.0; }
};

/// Draws the box of torchvision's RandomResizedCrop, with a ratio of width to height from 3/4 to
/// 4/3, by a sample's number. The box is the same on every machine.
Box random_box(ImageSize image, const CropRange& range, std::uint64_t seed, std::uint64_t sample);

}  // namespace duplex::datasets
