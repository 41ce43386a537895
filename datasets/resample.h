// Scaling of pictures.
#pragma once
#include <cstdint>

namespace duplex::datasets {

/// Scales a picture of `from_height` x `from_width` x `channels` interleaved bytes to `channels`
/// planes of `height` x `width`. The filter is a triangle, as wide as a target pixel where the
/// picture shrinks (so that nothing aliases; what PyTorch's Resize does) and as wide as a source
/// pixel where it grows (bilinear). All in integers, rounded once at the end: the same bytes on
/// every machine.
void resample(std::uint8_t* to, int height, int width, const std::uint8_t* from, int from_height,
              int from_width, int channels);

}  // namespace duplex::datasets
