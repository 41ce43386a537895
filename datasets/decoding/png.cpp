#include "datasets/decoding/png.h"

#include <string>

#define ZLIB_CONST  // Makes zlib read from const memory.
#include <zlib.h>

#include "core/error.h"
#include "datasets/decoding/gzip.h"

namespace duplex::datasets {
namespace {

using Bytes = std::vector<std::uint8_t>;

void put_big_endian(Bytes& to, std::uint32_t number) {
  for (int shift = 24; shift >= 0; shift -= 8)
    to.push_back(static_cast<std::uint8_t>(number >> shift));
}

/// Appends a chunk: length, kind, content, checksum of the last two.
void put_chunk(Bytes& to, const std::string& kind, const Bytes& content) {
  put_big_endian(to, static_cast<std::uint32_t>(content.size()));
  const std::size_t begin = to.size();
  to.insert(to.end(), kind.begin(), kind.end());
  to.insert(to.end(), content.begin(), content.end());
  put_big_endian(to, crc32(to.data() + begin, to.size() - begin));
}

/// Returns the image's rows as PNG filters them: a byte that names the filter, then the difference
/// of every byte to the pixel on its left ("Sub"), which compresses better than the bytes do.
Bytes filtered_rows(const std::uint8_t* planes, const Shape& shape) {
  constexpr std::uint8_t sub = 1;
  const auto channels = static_cast<std::size_t>(shape.c()),
             height = static_cast<std::size_t>(shape.h()),
             width = static_cast<std::size_t>(shape.w());
  Bytes rows;
  rows.reserve(height * (1 + width * channels));
  for (std::size_t y = 0; y < height; ++y) {
    rows.push_back(sub);
    for (std::size_t x = 0; x < width; ++x)
      for (std::size_t c = 0; c < channels; ++c) {
        const std::uint8_t* row = planes + (c * height + y) * width;
        const unsigned left = x > 0 ? row[x - 1] : 0U;
        rows.push_back(static_cast<std::uint8_t>(row[x] - left));
      }
  }
  return rows;
}

Bytes deflated(const Bytes& content) {
  uLongf size = ::compressBound(static_cast<uLong>(content.size()));
  Bytes result(size);
  if (::compress2(result.data(), &size, content.data(), static_cast<uLong>(content.size()),
                  Z_BEST_COMPRESSION) != Z_OK)
    throw Error("zlib cannot compress a picture");
  result.resize(size);
  return result;
}

}  // namespace

Bytes encode_png(const std::uint8_t* planes, const Shape& shape) {
  constexpr std::uint8_t bits = 8, grey = 0, colour = 2;
  Bytes header;
  put_big_endian(header, static_cast<std::uint32_t>(shape.w()));
  put_big_endian(header, static_cast<std::uint32_t>(shape.h()));
  // These are the depth, the kind of colour, and the only compression, set of filters and order.
  header.insert(header.end(), {bits, shape.c() == 3 ? colour : grey, 0, 0, 0});
  Bytes file{0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
  put_chunk(file, "IHDR", header);
  put_chunk(file, "IDAT", deflated(filtered_rows(planes, shape)));
  put_chunk(file, "IEND", {});
  return file;
}

}  // namespace duplex::datasets
