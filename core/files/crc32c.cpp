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
/// The instruction takes three times as long as it keeps the processor busy, so three runs of so
/// many bytes are summed side by side.
constexpr std::size_t run = 1024;

/// Computes the sum of some bytes with a run of zeros behind them. The sum behind is linear in the
/// one before, so each byte of it has a table.
class BehindRun {
 public:
  BehindRun() {
    for (int bit = 0; bit < 32; ++bit) {
      std::uint32_t rest = std::uint32_t{1} << bit;
      for (std::size_t i = 0; i < run; ++i) rest = (rest >> 8) ^ table[rest & 0xFF];
      auto& of_byte = tables_[static_cast<std::size_t>(bit / 8)];
      const std::size_t own = std::size_t{1} << (bit % 8);
      for (std::size_t byte = 0; byte < 256; ++byte)
        if ((byte & own) != 0) of_byte[byte] ^= rest;
    }
  }
  std::uint32_t operator()(std::uint32_t sum) const {
    return tables_[0][sum & 0xFF] ^ tables_[1][sum >> 8 & 0xFF] ^ tables_[2][sum >> 16 & 0xFF] ^
           tables_[3][sum >> 24];
  }

 private:
  std::array<std::array<std::uint32_t, 256>, 4> tables_{};
};

__attribute__((target("sse4.2"))) std::uint32_t crc32c_by_instruction(std::uint32_t crc,
                                                                      const unsigned char* data,
                                                                      std::size_t bytes) {
  static const BehindRun behind_run;
  std::uint64_t rest = ~crc;
  for (; bytes >= 3 * run; data += 3 * run, bytes -= 3 * run) {
    std::uint64_t second = 0, third = 0;
    rest = static_cast<std::uint32_t>(rest);
    for (std::size_t i = 0; i < run; i += 8) {
      std::uint64_t a = 0, b = 0, c = 0;
      std::memcpy(&a, data + i, 8);
      std::memcpy(&b, data + run + i, 8);
      std::memcpy(&c, data + 2 * run + i, 8);
      rest = __builtin_ia32_crc32di(rest, a);
      second = __builtin_ia32_crc32di(second, b);
      third = __builtin_ia32_crc32di(third, c);
    }
    const std::uint32_t both =
        behind_run(static_cast<std::uint32_t>(rest)) ^ static_cast<std::uint32_t>(second);
    rest = behind_run(both) ^ static_cast<std::uint32_t>(third);
  }
  rest = static_cast<std::uint32_t>(rest);
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
