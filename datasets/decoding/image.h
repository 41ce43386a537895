// Decodes JPEG and PNG images, from the bytes of a file to pixels.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace duplex::datasets {

/// An image of more pixels is refused, so that a few bytes cannot ask for all memory.
constexpr std::int64_t max_image_pixels = std::int64_t{1} << 26;
/// A file of more bytes is refused.
constexpr std::size_t max_image_bytes = std::size_t{1} << 28;

struct ImageSize {
  int width, height;
};

/// Checks an image's structure without decoding pixels, which costs a small part of decoding, and
/// returns the image's size. It finds every truncation, all damage to a PNG (by its checksums) and
/// every kind of image that this program does not decode. Damage inside a JPEG's pixel data mostly
/// shows only when decoding, and some of it never, since the format has no checksum. Errors hold
/// the reason alone: "the JPEG is truncated".
ImageSize check_image(const std::uint8_t* file, std::size_t bytes);

struct Image {
  ImageSize size;
  int channels;
  std::shared_ptr<const std::uint8_t> pixels;  ///< Height x width x channels, interleaved.
};

/// Checks an image and decodes it. With 3 `channels` grey is repeated, with 1 colour becomes luma.
/// Alpha is dropped, 16 bits become 8, and CMYK becomes RGB. Exif's orientation is not applied.
Image decode_image(const std::uint8_t* file, std::size_t bytes, int channels);

/// Returns whether a file's name ends like an image's, of any format: ".jpg", ".PNG", ".gif" ...
bool has_image_name(const std::string& name);

}  // namespace duplex::datasets
