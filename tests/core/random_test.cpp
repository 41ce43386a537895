// Tests the random numbers against published vectors, and each way of drawing against the others.
#include "core/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace duplex {
namespace {

// The vectors are Random123's kat_vectors, philox4x32 with 10 rounds.
TEST(Philox, KnownAnswers) {
  constexpr std::uint32_t ones = 0xffffffffU;
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}),
            (PhiloxCounter{0x6627e8d5U, 0xe169c58dU, 0xbc57ac4cU, 0x9b00dbd8U}));
  EXPECT_EQ(philox({ones, ones, ones, ones}, {ones, ones}),
            (PhiloxCounter{0x408f276dU, 0x41c83b0eU, 0xa20bc7c6U, 0x6d5451fdU}));
  EXPECT_EQ(
      philox({0x243f6a88U, 0x85a308d3U, 0x13198a2eU, 0x03707344U}, {0xa4093822U, 0x299f31d0U}),
      (PhiloxCounter{0xd16cfe09U, 0x94fdccebU, 0x5001e420U, 0x24126ea1U}));
}

// The values are from the FNV reference (Fowler, Noll, Vo; 64-bit FNV-1a).
TEST(StreamOf, KnownAnswers) {
  EXPECT_EQ(stream_of(""), 0xcbf29ce484222325U);
  EXPECT_EQ(stream_of("a"), 0xaf63dc4c8601ec8cU);
  EXPECT_EQ(stream_of("foobar"), 0x85944171f73967e8U);
}

TEST(RandomStream, AddressesBlocksAsDocumented) {
  const std::uint64_t seed = 0x0123456789abcdefU;
  const std::uint64_t stream = 0xfedcba9876543210U;
  const RandomStream random(seed, stream, 7);
  for (const std::uint64_t index :
       {std::uint64_t{0}, std::uint64_t{5}, (std::uint64_t{3} << 40) + 2}) {
    const std::uint64_t block = index / 4;
    const PhiloxCounter counter = {static_cast<std::uint32_t>(block),
                                   static_cast<std::uint32_t>(block >> 32) ^ 0xfedcba98U,
                                   0x76543210U, 7};
    EXPECT_EQ(random.bits(index), philox(counter, {0x89abcdefU, 0x01234567U})[index % 4]) << index;
  }
}

TEST(RandomStream, SeedStreamAndSubAllMatter) {
  const std::uint32_t base = RandomStream(1, 2, 3).bits(0);
  EXPECT_NE(base, RandomStream(2, 2, 3).bits(0));
  EXPECT_NE(base, RandomStream(1, 3, 3).bits(0));
  EXPECT_NE(base, RandomStream(1, 2, 4).bits(0));
  EXPECT_NE(base, RandomStream(1 + (std::uint64_t{1} << 32), 2, 3).bits(0));
  EXPECT_NE(base, RandomStream(1, 2 + (std::uint64_t{1} << 32), 3).bits(0));
}

TEST(RandomStream, UniformIsTheTop24Bits) {
  const RandomStream random(11, 12);
  for (std::uint64_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(random.uniform(i), std::ldexp(static_cast<double>(random.bits(i) >> 8), -24)) << i;
  }
}

TEST(RandomStream, FillAgreesWithUniformFromAnyStart) {
  const RandomStream random(3, stream_of("conv1.weight"));
  for (const std::uint64_t first : {0U, 1U, 2U, 3U, 4U, 1001U}) {
    for (const std::uint64_t count : {0U, 1U, 2U, 3U, 5U, 8U, 33U}) {
      std::vector<float> values(count + 1, -1.0F);
      random.fill_uniform(values.data(), count, first);
      for (std::uint64_t i = 0; i < count; ++i) {
        EXPECT_EQ(values[i], random.uniform(first + i)) << first << " + " << i;
      }
      EXPECT_EQ(values[count], -1.0F) << "written past the end from " << first;
    }
  }
}

TEST(RandomStream, BelowStaysBelowAndReachesEverything) {
  const RandomStream random(4, 4);
  std::vector<int> drawn(7);
  for (std::uint64_t i = 0; i < 7000; ++i) {
    const std::uint32_t value = random.below(i, 7);
    ASSERT_LT(value, 7U);
    EXPECT_EQ(value, (std::uint64_t{random.bits(i)} * 7) >> 32);
    ++drawn[value];
  }
  // Six standard deviations of a count of 7000 draws at 1/7 are 176. The draws are fixed.
  for (int times : drawn) EXPECT_NEAR(times, 1000, 176);
  EXPECT_EQ(random.below(0, 1), 0U);
}

// Checks mean and variance of a uniform variable, to six standard errors. The draws are fixed.
TEST(RandomStream, UniformHasTheMomentsOfUniform) {
  constexpr std::size_t count = 1 << 20;
  std::vector<float> values(count);
  RandomStream(5, stream_of("moments")).fill_uniform(values.data(), count);
  double sum = 0, squares = 0;
  for (float value : values) {
    ASSERT_GE(value, 0.0F);
    ASSERT_LT(value, 1.0F);
    sum += value;
    squares += (value - 0.5) * (value - 0.5);
  }
  EXPECT_NEAR(sum / count, 0.5, 6 * std::sqrt(1.0 / 12 / count));
  EXPECT_NEAR(squares / count, 1.0 / 12, 6 * std::sqrt(1.0 / 180 / count));
}

}  // namespace
}  // namespace duplex
