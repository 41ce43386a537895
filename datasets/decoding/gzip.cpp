#include "datasets/decoding/gzip.h"

#define ZLIB_CONST  // Makes zlib read from const memory.
#include <zlib.h>

#include <algorithm>
#include <climits>
#include <memory>
#include <utility>

#include "core/error.h"

namespace duplex::datasets {
namespace {

constexpr int gzip_only = 16;  // Added to windowBits, it makes zlib accept gzip alone.

/// Returns the unpacked length that the last member's trailer gives, at most what a file of this
/// size can hold. The trailer may be wrong: it is checked when all is unpacked.
std::size_t length_in_trailer(const std::vector<std::uint8_t>& file) {
  std::size_t length = 0;
  for (std::size_t i = 0; i < 4 && i < file.size(); ++i)
    length = length << 8 | file[file.size() - 1 - i];
  return std::min<std::size_t>({length, most_expansion * file.size(), INT_MAX});
}

/// Unpacks the member at stream.next_in and appends it to `content`; makes room for `expected`
/// bytes at first.
void unpack_member(z_stream& stream, std::size_t expected, std::vector<std::uint8_t>& content) {
  std::size_t used = content.size();
  // zlib may need room for one more byte to find that there is none.
  content.resize(used + std::max<std::size_t>(4096, expected + 1));
  for (int status = Z_OK; status != Z_STREAM_END;) {
    if (used >= INT_MAX) throw Error("the gzip file holds 2 GiB or more");
    if (used == content.size()) content.resize(2 * used);
    const std::size_t room = std::min<std::size_t>(content.size() - used, INT_MAX);
    stream.next_out = content.data() + used;
    stream.avail_out = static_cast<uInt>(room);
    status = ::inflate(&stream, Z_NO_FLUSH);
    used += room - stream.avail_out;
    if (status == Z_BUF_ERROR || (status == Z_OK && stream.avail_in == 0 && stream.avail_out != 0))
      throw Error("the gzip file is truncated");
    if (status != Z_OK && status != Z_STREAM_END) throw Error("the gzip file is corrupt");
  }
  content.resize(used);
}

}  // namespace

std::uint32_t crc32(const std::uint8_t* data, std::size_t bytes) {
  uLong sum = ::crc32(0, Z_NULL, 0);
  for (std::size_t part = 0; bytes > 0; data += part, bytes -= part) {
    part = std::min<std::size_t>(bytes, UINT_MAX);
    sum = ::crc32(sum, data, static_cast<uInt>(part));
  }
  return static_cast<std::uint32_t>(sum);
}

bool is_gzip(const std::vector<std::uint8_t>& file) {
  return file.size() >= 2 && file[0] == 0x1F && file[1] == 0x8B;
}

std::vector<std::uint8_t> gunzip(const std::vector<std::uint8_t>& file) {
  if (file.size() > INT_MAX) throw Error("the gzip file is too large");
  z_stream stream{};
  stream.next_in = file.data();
  stream.avail_in = static_cast<uInt>(file.size());
  if (::inflateInit2(&stream, gzip_only + MAX_WBITS) != Z_OK) throw Error("zlib cannot begin");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, ::inflateEnd);
  std::vector<std::uint8_t> content;
  // Room for that is made once: a file may have thousands of members that hold nothing.
  std::size_t expected = length_in_trailer(file);
  do {
    unpack_member(stream, std::exchange(expected, 0), content);
  } while (stream.avail_in > 0 && ::inflateReset(&stream) == Z_OK);
  return content;
}

}  // namespace duplex::datasets
