// Scales images.
#pragma once
#include <cstdint>

#include "datasets/decoding/framing.h"

namespace duplex::datasets {

/// Makes `channels` planes of `height` x `width` of an image of interleaved bytes, as `framing`
/// says. Nothing outside of the framing's part counts. The filter is a triangle, as wide as a
/// target pixel where the image shrinks (so that nothing aliases, as in PyTorch's Resize) and as
/// wide as a source pixel where it grows (bilinear). It computes in integers, rounds to 1/128
/// between its two passes and to whole levels at the end, so that the bytes are the same on every
/// machine.
void resample(std::uint8_t* to, int height, int width, const std::uint8_t* from, ImageSize image,
              int channels, const Framing& framing);
/// Does the same with the whole image, squashed.
void resample(std::uint8_t* to, int height, int width, const std::uint8_t* from, int from_height,
              int from_width, int channels);

}  // namespace duplex::datasets
