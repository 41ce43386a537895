#include "net/coding/unpack_chunk.h"

#include <string>

#include "net/coding/coding.h"

namespace duplex::net::coding {

void refuse_format(const std::uint8_t* from, std::size_t size, std::size_t count) {
  const std::size_t limit = 1 + 4 * count;
  if (size == 0 || size > limit)
    throw CodingError("a packed chunk has " + std::to_string(size) + " bytes where 1 to " +
                      std::to_string(limit) + " are due");
  if (from[0] == raw_chunk)
    throw CodingError("a raw chunk has " + std::to_string(size) + " bytes where " +
                      std::to_string(limit) + " are due");
  throw CodingError("a packed chunk is of format " + std::to_string(from[0]) +
                    ", this program knows 0 and 1");
}

void refuse(const char* why) {
  throw CodingError(why);
}

}  // namespace duplex::net::coding
