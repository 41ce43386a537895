// Defines the header of packed files, for their reader and their writer.
#pragma once
#include <cstddef>
#include <cstdint>

namespace duplex::datasets {

/// The file has these fields in this order: magic (64 bits), version (32), channels, height, width,
/// classes, samples (32 each), file_bytes, digest (64 each), table_checksum (32).
struct PackHeader {
  static constexpr std::uint64_t magic = 0x4B43'4150'4C50'5544;  ///< "DUPLPACK".
  static constexpr std::uint32_t version = 2;
  static constexpr std::size_t bytes = 52;
  static constexpr std::size_t pixels_begin = 4096;

  std::uint32_t channels = 0, height = 0, width = 0;
  std::uint32_t classes = 0, samples = 0;
  std::uint64_t file_bytes = 0;
  std::uint64_t digest = 0;
  std::uint32_t table_checksum = 0;

  /// Returns where the table begins, behind the pixels: at most 4096 + 2^32 * 3 * 2^28.
  std::uint64_t table_begin() const {
    return pixels_begin + std::uint64_t{samples} * channels * height * width;
  }
};

}  // namespace duplex::datasets
