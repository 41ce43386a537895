// Scales images.
#pragma once
#include <cstdint>

namespace duplex::datasets {

/// Scales an image of `from_height` x `from_width` x `channels` interleaved bytes to `channels`
/// planes of `height` x `width`. The filter is a triangle, as wide as a target pixel where the
/// image shrinks (so that nothing aliases, as in PyTorch's Resize) and as wide as a source pixel
/// where it grows (bilinear). It computes in integers, rounds to 1/128 between its two passes and
/// to whole levels at the end, so that the bytes are the same on every machine.
void resample(std::uint8_t* to, int height, int width, const std::uint8_t* from, int from_height,
              int from_width, int channels);

}  // namespace duplex::datasets
