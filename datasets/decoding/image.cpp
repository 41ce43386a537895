#include "datasets/decoding/image.h"

#include <stb/stb_image.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "datasets/decoding/gzip.h"
#include "datasets/decoding/stb.h"

namespace duplex::datasets {

namespace {

using Bytes = const std::uint8_t*;

std::uint32_t big_endian(Bytes at, int count) {
  std::uint32_t value = 0;
  for (int i = 0; i < count; ++i) value = value << 8 | at[i];
  return value;
}

bool starts_with(Bytes file, std::size_t bytes, std::string_view text, std::size_t at = 0) {
  return bytes >= at + text.size() && std::memcmp(file + at, text.data(), text.size()) == 0;
}

ImageSize checked_size(std::uint32_t width, std::uint32_t height) {
  if (width == 0 || height == 0) throw Error("it has no pixels");
  if (std::uint64_t{width} * height > static_cast<std::uint64_t>(max_image_pixels)) {
    throw Error("it has " + std::to_string(width) + "x" + std::to_string(height) +
                " pixels, more than the limit of " + std::to_string(max_image_pixels));
  }
  return {static_cast<int>(width), static_cast<int>(height)};
}

std::uint64_t pixels_of(ImageSize size) {
  return static_cast<std::uint64_t>(size.width) * static_cast<std::uint64_t>(size.height);
}

/// Throws if a file of so many bytes cannot hold so many pixels, or bits of them, of which a byte
/// holds at most `densest`: the decoder would take memory for what nobody has written.
void check_density(ImageSize size, std::uint64_t content, std::uint64_t densest,
                   std::size_t bytes) {
  if (content <= densest * bytes) return;
  throw Error("it has " + std::to_string(size.width) + "x" + std::to_string(size.height) +
              " pixels, more than a file of " + std::to_string(bytes) + " bytes can hold");
}

/// Throws if a Huffman table is longer than its segment or than the decoder's tables. Such a table
/// must not reach the decoder, since some versions of stb_image write past their tables.
void check_huffman_tables(Bytes segment, std::size_t bytes) {
  while (bytes > 0) {
    std::size_t symbols = 0;
    for (std::size_t i = 1; i <= 16 && i < bytes; ++i) symbols += segment[i];
    if (bytes < 17 + symbols || symbols > 256) throw Error("the JPEG's Huffman tables are corrupt");
    segment += 17 + symbols;
    bytes -= 17 + symbols;
  }
}

/// Checks a frame header (SOF), which holds precision, height, width and the number of components.
ImageSize check_frame(std::uint8_t marker, Bytes segment, std::size_t bytes) {
  if (marker > 0xC2) {
    throw Error("it is a JPEG of a kind that is not read (lossless, hierarchical or arithmetic)");
  }
  if (bytes < 6) throw Error("the JPEG's frame header is corrupt");
  if (segment[0] != 8) {
    throw Error("it is a JPEG of " + std::to_string(segment[0]) + " bits; 8 bits are read");
  }
  if (segment[5] != 1 && segment[5] != 3 && segment[5] != 4) {
    throw Error("it is a JPEG of " + std::to_string(segment[5]) +
                " colour components; 1, 3 and 4 are read");
  }
  return checked_size(big_endian(segment + 3, 2), big_endian(segment + 1, 2));
}

/// Throws if a JPEG has so many scans that nobody has meant them: each takes time for the whole
/// image, however few bytes it has. A sequential JPEG has at most one for each of four components.
void check_scans(int scans, bool progressive) {
  constexpr int most_sequential = 4, most_progressive = 100;
  const int most = progressive ? most_progressive : most_sequential;
  if (scans > most) throw Error("the JPEG has more than " + std::to_string(most) + " scans");
}

/// Walks over a JPEG's segments to its end marker, past the pixel data of every scan.
ImageSize check_jpeg(Bytes file, std::size_t bytes) {
  ImageSize size{0, 0};
  bool progressive = false;
  int scans = 0;
  std::size_t at = 2;
  while (true) {
    // The next marker is FF and then anything but 00 (an FF in the data), a restart (D0 to D7) or
    // FF (filling).
    const void* found = at < bytes ? std::memchr(file + at, 0xFF, bytes - at) : nullptr;
    if (found == nullptr) throw Error("the JPEG is truncated");
    at = static_cast<std::size_t>(static_cast<Bytes>(found) - file) + 1;
    if (at >= bytes) throw Error("the JPEG is truncated");
    const std::uint8_t marker = file[at];
    if (marker == 0xFF) continue;
    ++at;
    if (marker == 0x00 || marker == 0x01 || (marker >= 0xD0 && marker <= 0xD8)) continue;
    if (marker == 0xD9) break;
    if (bytes - at < 2) throw Error("the JPEG is truncated");
    const std::size_t length = big_endian(file + at, 2);
    if (length < 2) throw Error("the JPEG has a corrupt segment");
    if (bytes - at < length) throw Error("the JPEG is truncated");
    const Bytes segment = file + at + 2;
    if (marker == 0xC4) {
      check_huffman_tables(segment, length - 2);
    } else if (marker >= 0xC0 && marker <= 0xCF && marker != 0xC8 && marker != 0xCC) {
      if (size.width != 0) throw Error("the JPEG has two frames");
      size = check_frame(marker, segment, length - 2);
      progressive = marker == 0xC2;
    } else if (marker == 0xDA) {
      if (size.width == 0) throw Error("the JPEG has pixels before its frame header");
      check_scans(++scans, progressive);
    }
    at += length;
  }
  if (scans == 0) throw Error("the JPEG has no pixel data");
  // A block of 8x8 samples takes a bit at least, and a component has a sixteenth of the image's
  // samples at least: three of them need nine bits for 32x32 pixels.
  constexpr std::uint64_t pixels_of_a_byte = 1024;
  check_density(size, pixels_of(size), pixels_of_a_byte, bytes);
  return size;
}

/// Returns the bits of a pixel, by two bytes of a PNG's header.
std::uint64_t pixel_bits(std::uint8_t depth, std::uint8_t colour) {
  constexpr std::array<std::uint8_t, 7> channels{1, 0, 3, 1, 2, 0, 4};
  const bool known = depth == 1 || depth == 2 || depth == 4 || depth == 8 || depth == 16;
  if (!known || colour >= channels.size() || channels[colour] == 0)
    throw Error("the PNG has a corrupt header");
  return std::uint64_t{depth} * channels[colour];
}

/// Walks over a PNG's chunks (length, kind, content, checksum) to IEND.
ImageSize check_png(Bytes file, std::size_t bytes) {
  ImageSize size{0, 0};
  bool data = false;
  for (std::size_t at = 8;;) {
    if (bytes - at < 12) throw Error("the PNG is truncated");
    const std::size_t length = big_endian(file + at, 4);
    if (bytes - at - 12 < length) throw Error("the PNG is truncated");
    const std::string_view kind(reinterpret_cast<const char*>(file + at + 4), 4);
    if (crc32(file + at + 4, length + 4) != big_endian(file + at + 8 + length, 4)) {
      throw Error("the PNG is corrupt: a checksum is wrong");
    }
    if ((at == 8) != (kind == "IHDR") || (kind == "IHDR" && length != 13)) {
      throw Error("the PNG does not begin with its header");
    }
    if (kind == "IHDR") size = checked_size(big_endian(file + 16, 4), big_endian(file + 20, 4));
    if (kind == "IDAT") data = true;
    if (kind == "IEND") break;
    at += 12 + length;
  }
  if (!data) throw Error("the PNG has no pixel data");
  constexpr std::uint64_t bits_of_a_byte = std::uint64_t{8} * most_expansion;
  check_density(size, pixels_of(size) * pixel_bits(file[24], file[25]), bits_of_a_byte, bytes);
  return size;
}

[[noreturn]] void refuse(Bytes file, std::size_t bytes) {
  if (bytes == 0) throw Error("it is empty");
  static constexpr std::array<std::pair<std::string_view, const char*>, 7> known{{
      {"GIF8", "a GIF"},
      {"BM", "a BMP"},
      {std::string_view("II*\0", 4), "a TIFF"},
      {std::string_view("MM\0*", 4), "a TIFF"},
      {"%PDF", "a PDF"},
      {"<", "a web page"},
      {"PK", "a zip archive"},
  }};
  if (starts_with(file, bytes, "WEBP", 8)) throw Error("it is a WebP, not a JPEG or PNG");
  for (const auto& [magic, what] : known) {
    if (starts_with(file, bytes, magic)) {
      throw Error("it is " + std::string(what) + ", not a JPEG or PNG");
    }
  }
  throw Error("it is neither a JPEG nor a PNG");
}

}  // namespace

ImageSize check_image(Bytes file, std::size_t bytes) {
  if (starts_with(file, bytes, "\xFF\xD8\xFF")) return check_jpeg(file, bytes);
  if (starts_with(file, bytes, "\x89PNG\r\n\x1A\n")) return check_png(file, bytes);
  refuse(file, bytes);
}

Image decode_image(Bytes file, std::size_t bytes, int channels) {
  const ImageSize checked = check_image(file, bytes);
  int width = 0, height = 0, found = 0;
  forget_failure_reason();
  stbi_uc* pixels =
      stbi_load_from_memory(file, static_cast<int>(bytes), &width, &height, &found, channels);
  if (pixels == nullptr) {
    const char* reason = stbi_failure_reason();
    throw Error("it cannot be decoded (" +
                std::string(reason == nullptr ? "the decoder gives no reason" : reason) + ")");
  }
  std::shared_ptr<const std::uint8_t> owner(pixels, stbi_image_free);
  if (width != checked.width || height != checked.height) {
    throw Error("its size is not the one its header tells");
  }
  return {checked, channels, std::move(owner)};
}

bool has_image_name(const std::string& name) {
  static constexpr std::array<std::string_view, 12> endings{
      "jpg", "jpeg", "jpe", "jfif", "png", "gif", "bmp", "tif", "tiff", "webp", "ppm", "heic"};
  const std::size_t dot = name.rfind('.');
  if (dot == std::string::npos) return false;
  std::string ending = name.substr(dot + 1);
  for (char& letter : ending) {
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  return std::find(endings.begin(), endings.end(), ending) != endings.end();
}

}  // namespace duplex::datasets
