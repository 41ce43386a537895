// CRC32C (Castagnoli's polynomial, RFC 3720, appendix B.4): a checksum that finds any damage of up
// to 32 bits in a row, and others but for one in four billion.
#pragma once
#include <cstddef>
#include <cstdint>

namespace duplex {

/// Returns the checksum of what `crc` is the checksum of, followed by these bytes; `crc` of nothing
/// is 0. It runs on the processor's own instruction where there is one (SSE4.2).
std::uint32_t crc32c(std::uint32_t crc, const void* data, std::size_t bytes);

/// Does the same by a table, on any processor.
std::uint32_t crc32c_by_table(std::uint32_t crc, const void* data, std::size_t bytes);

}  // namespace duplex
