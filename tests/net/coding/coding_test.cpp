// Tests the codings of values on the wire. The nearest value that 16 bits can hold is looked for
// here among all values of the formats' definitions.
#include "net/coding/coding.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "core/error.h"

namespace duplex::net {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

float float_of(std::uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

std::uint32_t bits_of(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

std::vector<float> through(Coding coding, const std::vector<float>& values) {
  const std::size_t most = coded_bytes(coding, values.size()) + coding_slack;
  std::vector<std::uint8_t> bytes(most + 1, 0xa5);
  const std::size_t size = encode(coding, values.data(), values.size(), bytes.data());
  EXPECT_TRUE(fits(coding, values.size(), size));
  EXPECT_EQ(bytes.back(), 0xa5) << "no more than it may";
  std::vector<float> back(values.size() + 1, 123.0F);
  decode(coding, Values::gradient, bytes.data(), size, values.size(), back.data());
  EXPECT_EQ(back.back(), 123.0F);
  back.pop_back();
  return back;
}

/// A value of the format with so many bits of exponent and mantissa, of the same sign; infinite
/// where the exponent's bits are all set.
double value_of(std::uint32_t code, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const auto exponent = static_cast<int>(code >> mantissa_bits);
  const double mantissa = code & ((1U << mantissa_bits) - 1U);
  if (exponent == (1 << exponent_bits) - 1) return std::numeric_limits<double>::infinity();
  if (exponent == 0) return std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return std::ldexp(mantissa + std::ldexp(1.0, mantissa_bits), exponent - bias - mantissa_bits);
}

/// The nearest finite value, or infinite where the value lies half a unit beyond the largest one.
double nearest(double value, int exponent_bits, int mantissa_bits) {
  const double size = std::abs(value);
  const std::uint32_t end = ((1U << exponent_bits) - 1U) << mantissa_bits;  // Infinity's code.
  std::uint32_t low = 0, high = end;
  while (high - low > 1) {
    const std::uint32_t middle = (low + high) / 2;
    (value_of(middle, exponent_bits, mantissa_bits) <= size ? low : high) = middle;
  }
  const double below = value_of(low, exponent_bits, mantissa_bits);
  // Behind the largest value this would be the next one.
  const double above = high == end ? 2 * below - value_of(low - 1, exponent_bits, mantissa_bits)
                                   : value_of(high, exponent_bits, mantissa_bits);
  const double middle = (below + above) / 2;
  const bool up = size > middle || (size == middle && low % 2 == 1);
  const double chosen = !up ? below : high == end ? std::numeric_limits<double>::infinity() : above;
  return std::copysign(chosen, value);
}

/// Values of all sizes, among them those in the middle between two of bf16 or fp16.
std::vector<float> many_values() {
  std::mt19937 random(7);
  std::vector<float> values{0.0F,
                            -0.0F,
                            1.0F,
                            -1.0F,
                            65504.0F,
                            1e-45F,
                            -1e-45F,
                            std::numeric_limits<float>::max(),
                            std::numeric_limits<float>::min()};
  for (int i = 0; i < 20000; ++i) {
    const std::uint32_t bits = random() & 0xff7fffffU;  // All finite.
    values.push_back(float_of(bits));
    values.push_back(float_of((bits & 0xffff0000U) | 0x8000U));
    values.push_back(float_of((bits & 0xffffe000U) | 0x1000U));
  }
  return values;
}

TEST(Coding, Float32AndLosslessStayAsTheyAre) {
  std::vector<float> values = many_values();
  values.push_back(float_of(0x7fc12345U));
  for (const Coding coding : {Coding::float32, Coding::lossless}) {
    const std::vector<float> back = through(coding, values);
    EXPECT_EQ(std::memcmp(back.data(), values.data(), values.size() * sizeof(float)), 0);
  }
}

/// Weights are packed against those that the other end has, and against no others.
TEST(Coding, LosslessWeightsNeedTheOldOnes) {
  const std::vector<float> before = many_values();
  std::vector<float> now = before;
  for (std::size_t i = 0; i < now.size(); i += 2) now[i] *= 1.0F + 0x1p-20F;
  std::vector<std::uint8_t> bytes(coded_bytes(Coding::lossless, now.size()) + coding_slack);
  const std::size_t size = encode_weights(now.data(), before.data(), now.size(), bytes.data());
  EXPECT_LT(size, now.size() * sizeof(float) / 2);
  std::vector<float> there = before;
  decode(Coding::lossless, Values::weights, bytes.data(), size, there.size(), there.data());
  EXPECT_EQ(std::memcmp(there.data(), now.data(), now.size() * sizeof(float)), 0);
  std::vector<float> others = before;
  std::uint32_t bits = 0;
  std::memcpy(&bits, &others[7], sizeof bits);
  bits ^= 1U;
  std::memcpy(&others[7], &bits, sizeof bits);
  EXPECT_THROW(
      decode(Coding::lossless, Values::weights, bytes.data(), size, others.size(), others.data()),
      CodingError);
  for (std::size_t cut = 0; cut < 8; ++cut) {
    there = before;
    EXPECT_THROW(
        decode(Coding::lossless, Values::weights, bytes.data(), cut, there.size(), there.data()),
        CodingError);
  }
}

TEST(Coding, Bf16IsTheNearestValueAndTiesGoToTheEvenOne) {
  const std::vector<float> values = many_values();
  const std::vector<float> back = through(Coding::bf16, values);
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_EQ(bits_of(back[i]), bits_of(static_cast<float>(nearest(values[i], 8, 7)))) << values[i];
}

/// Chunks whose largest value is in [2^14, 2^15) have the exponent 0.
TEST(Coding, Fp16IsTheNearestValueAndTiesGoToTheEvenOne) {
  std::vector<float> values{16384.0F};
  for (const float value : many_values())
    if (std::abs(value) < 32768.0F) values.push_back(value);
  const std::vector<float> back = through(Coding::fp16, values);
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_EQ(bits_of(back[i]), bits_of(static_cast<float>(nearest(values[i], 5, 10))))
        << values[i];
}

TEST(Coding, Fp16ScalesAChunkSoThatItsLargestValueFits) {
  for (const float factor : {1e-30F, 1e-8F, 1.0F, 1e9F, 1e34F}) {
    std::vector<float> values;
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    for (int i = 0; i < 1000; ++i) values.push_back(factor * normal(random));
    const std::vector<float> back = through(Coding::fp16, values);
    const float largest = std::abs(*std::max_element(
        values.begin(), values.end(), [](float a, float b) { return std::abs(a) < std::abs(b); }));
    for (std::size_t i = 0; i < values.size(); ++i) {
      // Half a unit of a mantissa of 11 bits, or half the least step, 2^-24, of what 2^14 stands
      // for.
      const float bound = std::max(std::abs(values[i]) * 0x1p-11F, largest * 0x1p-25F * 0x1p-14F);
      ASSERT_LE(std::abs(back[i] - values[i]), bound) << values[i];
    }
  }
}

TEST(Coding, InfinitiesAndNansStay) {
  for (const Coding coding : {Coding::bf16, Coding::fp16}) {
    // The lowest bits of a NaN's mantissa alone are not lost in such a way that it gets infinite.
    const std::vector<float> back =
        through(coding, {infinity, -infinity, float_of(0x7f800001U), float_of(0xffffffffU), 2.0F});
    EXPECT_EQ(back[0], infinity);
    EXPECT_EQ(back[1], -infinity);
    EXPECT_TRUE(std::isnan(back[2]) && std::isnan(back[3]));
    EXPECT_EQ(back[4], 2.0F);
  }
}

/// The vectors of the processor take several values at once, and the rest one by one.
TEST(Coding, CountsOfAllSizesAreCodedAlike) {
  const std::vector<float> values = many_values();
  for (const Coding coding : {Coding::bf16, Coding::fp16})
    for (std::size_t count = 1; count <= 70; ++count) {
      std::vector<float> some(values.begin() + 9, values.begin() + 9 + static_cast<long>(count));
      for (float& value : some) value = std::fmod(value, 1.0F);
      some[0] = 0.75F;  // The same scale for all.
      const std::vector<float> back = through(coding, some);
      for (std::size_t i = 1; i < count; ++i)
        EXPECT_EQ(bits_of(back[i]), bits_of(through(coding, {0.75F, some[i]})[1]));
    }
}

/// A peer may send anything.
TEST(Coding, AnyBytesAreSomeValues) {
  std::mt19937 random(5);
  for (const Coding coding : {Coding::bf16, Coding::fp16})
    for (int round = 0; round < 200; ++round) {
      std::vector<std::uint8_t> bytes(coded_bytes(coding, 33));
      for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
      std::vector<float> values(34, 123.0F);
      decode(coding, Values::weights, bytes.data(), bytes.size(), 33, values.data());
      EXPECT_EQ(values[33], 123.0F);
    }
}

TEST(WireFormat, IsReadAsItIsWritten) {
  for (const char* text :
       {"float32", "bf16", "fp16", "weights:bf16", "gradients:fp16", "weights:bf16,gradients:fp16"})
    EXPECT_EQ(parse_wire_format(text).str(), text);
  EXPECT_EQ(parse_wire_format("gradients:fp16,weights:bf16").str(), "weights:bf16,gradients:fp16");
  EXPECT_TRUE(parse_wire_format("float32").exact());
  EXPECT_TRUE(parse_wire_format("weights:lossless").exact());
  EXPECT_FALSE(parse_wire_format("gradients:bf16").exact());
  for (const char* text :
       {"", "int8", "bf16,", "weights", "weights:", "weights:int8", "biases:bf16",
        "weights:bf16,weights:fp16", "bf16,gradients:bf16", "BF16"})
    try {
      parse_wire_format(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code, Exit::usage);
      EXPECT_NE(std::string(error.what()).find("'" + std::string(text) + "'"), std::string::npos);
    }
}

}  // namespace
}  // namespace duplex::net
