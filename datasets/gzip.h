// Gzip files (RFC 1952) and the checksum that they and PNG share.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace duplex::datasets {

/// CRC-32 as in IEEE 802.3, gzip and PNG.
std::uint32_t crc32(const std::uint8_t* data, std::size_t bytes);

bool is_gzip(const std::vector<std::uint8_t>& file);

/// The content of a gzip file of one member and less than 2 GiB, its length and checksum verified.
/// Errors hold the reason alone.
std::vector<std::uint8_t> gunzip(const std::vector<std::uint8_t>& file);

}  // namespace duplex::datasets
