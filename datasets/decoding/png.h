// Encodes images as PNG, for pages that show what a network has seen.
#pragma once
#include <cstdint>
#include <vector>

#include "core/shape.h"

namespace duplex::datasets {

/// Returns a PNG file of an image of `shape`, (1, C, H, W) with C 1 (grey) or 3 (colour), from C
/// planes of H x W bytes.
std::vector<std::uint8_t> encode_png(const std::uint8_t* planes, const Shape& shape);

}  // namespace duplex::datasets
