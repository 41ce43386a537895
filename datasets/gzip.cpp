#include "datasets/gzip.h"

#include <stb/stb_image.h>

#include <array>
#include <climits>

#include "core/error.h"

namespace duplex::datasets {
namespace {

using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

/// tables[k][b]: what byte b does to the checksum when k more bytes follow it.
constexpr Tables make_tables() {
  Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ (value & 1 ? 0xEDB88320u : 0u);
    tables[0][byte] = value;
  }
  for (std::size_t k = 1; k < 8; ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t value = tables[k - 1][byte];
      tables[k][byte] = value >> 8 ^ tables[0][value & 0xFF];
    }
  }
  return tables;
}

constexpr Tables tables = make_tables();

std::uint32_t little_endian(const std::uint8_t* at) {
  return std::uint32_t{at[0]} | std::uint32_t{at[1]} << 8 | std::uint32_t{at[2]} << 16 |
         std::uint32_t{at[3]} << 24;
}

/// Where the compressed data begin: behind ten fixed bytes and what their flags announce.
std::size_t header_bytes(const std::vector<std::uint8_t>& file) {
  constexpr unsigned checksum = 2, extra = 4, name = 8, comment = 16, reserved = 0xE0;
  std::size_t at = 10;
  if (file.size() < at) throw Error("the gzip file is truncated");
  const unsigned flags = file[3];
  if (file[2] != 8 || (flags & reserved) != 0) throw Error("it is a gzip file of an unknown kind");
  if ((flags & extra) != 0) {
    if (file.size() < at + 2) throw Error("the gzip file is truncated");
    at += 2 + (file[at] | std::size_t{file[at + 1]} << 8);
  }
  for (unsigned text : {name, comment}) {
    if ((flags & text) == 0) continue;
    while (at < file.size() && file[at] != 0) ++at;
    ++at;
  }
  if ((flags & checksum) != 0) at += 2;
  return at;
}

}  // namespace

std::uint32_t crc32(const std::uint8_t* data, std::size_t bytes) {
  std::uint32_t value = 0xFFFFFFFFu;
  for (; bytes >= 8; bytes -= 8, data += 8) {
    const std::uint32_t low = value ^ little_endian(data), high = little_endian(data + 4);
    value = tables[7][low & 0xFF] ^ tables[6][low >> 8 & 0xFF] ^ tables[5][low >> 16 & 0xFF] ^
            tables[4][low >> 24] ^ tables[3][high & 0xFF] ^ tables[2][high >> 8 & 0xFF] ^
            tables[1][high >> 16 & 0xFF] ^ tables[0][high >> 24];
  }
  for (; bytes > 0; --bytes, ++data) value = value >> 8 ^ tables[0][(value ^ *data) & 0xFF];
  return ~value;
}

bool is_gzip(const std::vector<std::uint8_t>& file) {
  return file.size() >= 2 && file[0] == 0x1F && file[1] == 0x8B;
}

std::vector<std::uint8_t> gunzip(const std::vector<std::uint8_t>& file) {
  constexpr std::size_t trailer = 8, best_ratio = 1032;  // Deflate packs no tighter.
  const std::size_t begin = header_bytes(file);
  if (file.size() < begin + trailer) throw Error("the gzip file is truncated");
  const std::size_t packed = file.size() - begin - trailer;
  const std::uint8_t* tail = file.data() + file.size() - trailer;
  const std::size_t length = little_endian(tail + 4);
  if (length > INT_MAX || file.size() > INT_MAX || length > packed * best_ratio) {
    throw Error("the gzip file is truncated, corrupt or too large");
  }
  std::vector<std::uint8_t> content(length);
  // The trailer goes along: some versions of the decoder read a little ahead of where they are.
  const int got = stbi_zlib_decode_noheader_buffer(
      reinterpret_cast<char*>(content.data()), static_cast<int>(length),
      reinterpret_cast<const char*>(file.data() + begin), static_cast<int>(packed + trailer));
  if (got < 0 || static_cast<std::size_t>(got) != length ||
      crc32(content.data(), length) != little_endian(tail)) {
    throw Error("the gzip file is truncated or corrupt");
  }
  return content;
}

}  // namespace duplex::datasets
