#include "core/files/crc32c.h"

#include <array>
#include <cstring>

namespace duplex {
namespace {

constexpr std::uint32_t polynomial = 0x82F63B78;  // Castagnoli's, lowest bit first.

constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) rest = (rest >> 1) ^ ((rest & 1) != 0 ? polynomial : 0);
    table[byte] = rest;
  }
  return table;
}
constexpr std::array<std::uint32_t, 256> table = make_table();

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) std::uint32_t crc32c_by_instruction(std::uint32_t crc,
                                                                      const unsigned char* data,
                                                                      std::size_t bytes) {
  std::uint64_t rest = ~crc;
  for (; bytes >= 8; data += 8, bytes -= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, data, 8);
    rest = __builtin_ia32_crc32di(rest, word);
  }
  auto narrow = static_cast<std::uint32_t>(rest);
  for (; bytes > 0; ++data, --bytes) narrow = __builtin_ia32_crc32qi(narrow, *data);
  return ~narrow;
}
#endif

}  // namespace

std::uint32_t crc32c_by_table(std::uint32_t crc, const void* data, std::size_t bytes) {
  const auto* from = static_cast<const unsigned char*>(data);
  std::uint32_t rest = ~crc;
  for (std::size_t i = 0; i < bytes; ++i) rest = (rest >> 8) ^ table[(rest ^ from[i]) & 0xFF];
  return ~rest;
}

std::uint32_t crc32c(std::uint32_t crc, const void* data, std::size_t bytes) {
#if defined(__x86_64__)
  static const bool there = __builtin_cpu_supports("sse4.2") != 0;
  if (there) return crc32c_by_instruction(crc, static_cast<const unsigned char*>(data), bytes);
#endif
  return crc32c_by_table(crc, data, bytes);
}

}  // namespace duplex
