// Pictures: JPEG and PNG, from the bytes of a file to pixels.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace duplex::datasets {

/// A picture of more pixels is refused, so that a few bytes cannot ask for all memory.
constexpr std::int64_t max_picture_pixels = std::int64_t{1} << 26;
/// A file of more bytes is refused.
constexpr std::size_t max_picture_bytes = std::size_t{1} << 28;

struct PictureSize {
  int width, height;
};

/// Looks at a picture's structure without decoding pixels, which costs a small part of decoding.
/// Finds every truncation, all damage to a PNG (by its checksums) and what this program does not
/// decode; damage inside a JPEG's pixel data mostly shows only when decoding, and some of it never,
/// as the format has no checksum. Errors hold the reason alone: "the JPEG is truncated".
PictureSize check_picture(const std::uint8_t* file, std::size_t bytes);

struct Picture {
  PictureSize size;
  int channels;
  std::shared_ptr<const std::uint8_t> pixels;  ///< Height x width x channels, interleaved.
};

/// Checks and decodes. `channels` 3: grey is repeated; 1: colour becomes luma. Alpha is dropped,
/// 16 bits become 8, CMYK becomes RGB. An orientation noted in Exif is not applied.
Picture decode_picture(const std::uint8_t* file, std::size_t bytes, int channels);

/// Whether a file's name says that it is a picture, of whatever format: ".jpg", ".PNG", ".gif" ...
bool has_picture_name(const std::string& name);

}  // namespace duplex::datasets
