// Tests CRC32C against the examples of RFC 3720, B.4, and the two ways to compute it against each
// other.
#include "core/files/crc32c.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace duplex {
namespace {

TEST(Crc32c, IsThatOfTheExamplesOfRfc3720) {
  std::string ascending, descending;
  for (int i = 0; i < 32; ++i) ascending += static_cast<char>(i);
  descending.assign(ascending.rbegin(), ascending.rend());
  const std::vector<std::pair<std::string, std::uint32_t>> examples{
      {std::string(32, '\0'), 0x8A9136AA},
      {std::string(32, '\xff'), 0x62A8AB43},
      {ascending, 0x46DD794E},
      {descending, 0x113FDB5C},
      {"123456789", 0xE3069283},
      {"", 0}};
  for (const auto& [text, expected] : examples) {
    EXPECT_EQ(crc32c(0, text.data(), text.size()), expected);
    EXPECT_EQ(crc32c_by_table(0, text.data(), text.size()), expected);
  }
}

TEST(Crc32c, DoesNotDependOnHowTheBytesAreCut) {
  std::string text;
  for (int i = 0; i < 20000; ++i) text += static_cast<char>(i * 37);
  const std::uint32_t whole = crc32c_by_table(0, text.data(), text.size());
  for (std::size_t cut = 0; cut <= text.size(); cut += 97)
    EXPECT_EQ(crc32c(crc32c(0, text.data(), cut), text.data() + cut, text.size() - cut), whole);
}

}  // namespace
}  // namespace duplex
