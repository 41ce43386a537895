// Compares gzip and its checksum with recorded files.
#include "datasets/decoding/gzip.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/datasets/files.h"

namespace duplex::datasets {
namespace {

using testing::Bytes;

/// Python's gzip module wrote this: "one fish two fish red fish blue fish\n" three times, with a
/// file name in the header.
const Bytes packed{0x1F, 0x8B, 0x08, 0x08, 0x00, 0x00, 0x00, 0x00, 0x02, 0xFF, 0x6E, 0x6F,
                   0x74, 0x65, 0x2E, 0x74, 0x78, 0x74, 0x00, 0xCB, 0xCF, 0x4B, 0x55, 0x48,
                   0xCB, 0x2C, 0xCE, 0x50, 0x28, 0x29, 0xCF, 0x87, 0x30, 0x8A, 0x52, 0x53,
                   0x20, 0x8C, 0xA4, 0x9C, 0x52, 0x88, 0x1C, 0x57, 0x3E, 0xD5, 0x14, 0x01,
                   0x00, 0xBC, 0xDF, 0x6E, 0xA2, 0x6F, 0x00, 0x00, 0x00};

TEST(Gzip, ChecksumIsTheOneOfTheStandard) {
  // The catalogue of CRC algorithms gives the checksum of this text as its check value.
  const std::string text = "123456789";
  EXPECT_EQ(crc32(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()), 0xCBF43926u);
  EXPECT_EQ(crc32(nullptr, 0), 0u);
}

TEST(Gzip, Unpacks) {
  ASSERT_TRUE(is_gzip(packed));
  const Bytes content = gunzip(packed);
  std::string expected;
  for (int i = 0; i < 3; ++i) expected += "one fish two fish red fish blue fish\n";
  EXPECT_EQ(std::string(content.begin(), content.end()), expected);
}

TEST(Gzip, CutShortAnywhereIsRefused) {
  for (std::size_t length = 0; length < packed.size(); ++length) {
    const Bytes cut(packed.begin(), packed.begin() + static_cast<std::ptrdiff_t>(length));
    EXPECT_NE(testing::error_of([&] { gunzip(cut); }), "") << length;
  }
}

TEST(Gzip, DamagedDataAreRefused) {
  // No checksum covers what precedes the data, and most bits of the last byte only fill it.
  for (std::size_t at = 19; at < packed.size(); ++at) {
    if (at == packed.size() - 9) continue;
    for (std::uint8_t bit = 1; bit != 0; bit = static_cast<std::uint8_t>(bit << 1)) {
      Bytes damaged = packed;
      damaged[at] ^= bit;
      EXPECT_NE(testing::error_of([&] { gunzip(damaged); }), "") << at;
    }
  }
}

// Room for the content that the trailer announces, here four hundred megabytes, is made once.
TEST(Gzip, ThousandsOfMembersThatHoldNothingTakeNoTime) {
  const Bytes empty{0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  EXPECT_TRUE(gunzip(empty).empty());
  Bytes file;
  for (int i = 0; i < 20000; ++i) file.insert(file.end(), empty.begin(), empty.end());
  file.back() = 0x7F;
  EXPECT_NE(testing::error_of([&] { gunzip(file); }), "");
}

}  // namespace
}  // namespace duplex::datasets
