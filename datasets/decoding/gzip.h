// Unpacks gzip files (RFC 1952) by zlib, and has what they share with PNG.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace duplex::datasets {

/// Deflate, the compression of gzip and PNG, makes at most so many bytes of one.
constexpr std::size_t most_expansion = 1032;

/// Returns the CRC-32 of IEEE 802.3, gzip and PNG.
std::uint32_t crc32(const std::uint8_t* data, std::size_t bytes);

bool is_gzip(const std::vector<std::uint8_t>& file);

/// Returns the content of all members of a gzip file, and verifies their lengths and checksums.
/// Throws Error with the reason alone: the file is truncated or corrupt, or holds 2 GiB or more.
std::vector<std::uint8_t> gunzip(const std::vector<std::uint8_t>& file);

}  // namespace duplex::datasets
