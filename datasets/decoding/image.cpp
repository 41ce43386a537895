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

/// Walks over a JPEG's segments to its end marker, past the pixel data of every scan.
ImageSize check_jpeg(Bytes file, std::size_t bytes) {
  ImageSize size{0, 0};
  bool scan = false;
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
    } else if (marker == 0xDA) {
      if (size.width == 0) throw Error("the JPEG has pixels before its frame header");
      scan = true;
    }
    at += length;
  }
  if (!scan) throw Error("the JPEG has no pixel data");
  return size;
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
