// Packed chunks that nobody packed: they are refused, or make some values, and every coder says the
// same.
#include <gtest/gtest.h>

#include <random>

#include "tests/net/coding/packing.h"

namespace duplex::net {
namespace {

/// Values of a few blocks, of which the last is not whole, and one goes raw.
Bits values(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Bits bits;
  for (std::size_t i = 0; i < count; ++i)
    bits.push_back(i / 64 == 1 ? static_cast<std::uint32_t>(random()) : bits_of(normal(random)));
  return bits;
}

/// Unpacks by every coder; all must come to the same end, which is returned.
Unpacked unpack_by_all(Content content, const Packed& packed, const Bits& before) {
  Unpacked plain = unpack(lossless_coders().front(), content, packed, before);
  for (const LosslessCoder& coder : lossless_coders()) {
    const Unpacked out = unpack(coder, content, packed, before);
    EXPECT_EQ(out.error, plain.error) << coder.name;
    EXPECT_TRUE(out.bits == plain.bits) << coder.name;
  }
  return plain;
}

struct Sent {
  Content content;
  Bits before, now;
  Packed packed;
};

std::vector<Sent> some_sent() {
  std::vector<Sent> all;
  for (const Content content : contents)
    for (const std::size_t count : {1, 3, 64, 65, 150, 1300}) {
      Sent sent{content, values(count, 1), values(count, 1), {}};
      for (std::size_t i = 0; i < count; ++i) sent.now[i] += static_cast<std::uint32_t>(i * i);
      sent.packed = pack(lossless_coders().front(), content, sent.now, sent.before);
      EXPECT_EQ(sent.packed[0], content == Content::gradient && count == 1 ? 0 : 1) << count;
      all.push_back(sent);
    }
  return all;
}

TEST(HostileChunk, EveryCutIsRefused) {
  for (const Sent& sent : some_sent())
    for (std::size_t size = 0; size < sent.packed.size(); ++size) {
      const Packed cut(sent.packed.begin(),
                       sent.packed.begin() + static_cast<std::ptrdiff_t>(size));
      EXPECT_NE(unpack_by_all(sent.content, cut, sent.before).error, "")
          << size << " of " << sent.packed.size();
    }
}

TEST(HostileChunk, WhatFollowsTheChunkIsRefused) {
  for (const Sent& sent : some_sent())
    for (const std::size_t more : {1, 2, 7, 8, 100, 2000})
      for (const std::uint8_t byte : {0, 1, 255}) {
        Packed longer = sent.packed;
        longer.insert(longer.end(), more, byte);
        EXPECT_NE(unpack_by_all(sent.content, longer, sent.before).error, "") << more;
      }
}

TEST(HostileChunk, AnotherNumberOfValuesIsRefused) {
  for (const Sent& sent : some_sent())
    for (const std::size_t count : {2, 63, 66, 128, 149, 151, 1299, 1301})
      EXPECT_NE(unpack_by_all(sent.content, sent.packed, values(count, 1)).error, "") << count;
}

TEST(HostileChunk, EveryFlippedBitIsRefusedOrMakesOtherValues) {
  for (const Sent& sent : some_sent()) {
    if (sent.now.size() > 200) continue;
    int same = 0;  // A block in which nothing changed has a base all the same.
    for (std::size_t bit = 0; bit < 8 * sent.packed.size(); ++bit) {
      Packed flipped = sent.packed;
      flipped[bit / 8] = static_cast<std::uint8_t>(flipped[bit / 8] ^ 1U << bit % 8);
      const Unpacked out = unpack_by_all(sent.content, flipped, sent.before);
      same += out.error.empty() && out.bits == sent.now ? 1 : 0;
    }
    EXPECT_LE(same, 8) << sent.now.size();
  }
}

TEST(HostileChunk, NoiseIsRefusedOrMakesValues) {
  std::mt19937 random(1);
  int refused = 0, taken = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::size_t count = 1 + random() % 200;
    Packed noise(1 + random() % (4 * count));
    // The more ones, the shorter the codes; a base about the weights' exponents, or any.
    const unsigned ones = random() % 4;
    for (std::uint8_t& byte : noise) {
      byte = static_cast<std::uint8_t>(random());
      for (unsigned k = 0; k < ones; ++k) byte = static_cast<std::uint8_t>(byte | random());
    }
    noise[0] = 1;
    if (noise.size() > 1 && random() % 2 == 0)
      noise[1] = static_cast<std::uint8_t>(110 + random() % 40);
    const Unpacked out =
        unpack_by_all(contents[random() % 2], noise, values(count, static_cast<unsigned>(i)));
    ++(out.error.empty() ? taken : refused);
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(taken, 0);
}

TEST(HostileChunk, TheMessageSaysWhatIsWrong) {
  struct Wrong {
    Content content;
    Bits before;
    Packed packed;
    const char* says;
  };
  const Packed zeros(40, 0);
  Packed long_code{1, 120};
  long_code.insert(long_code.end(), zeros.begin(), zeros.end());
  const Bits ten(10, 0x3F800000), one(1, 0);
  const std::vector<Wrong> all{
      {Content::weights, ten, {}, "a packed chunk has 0 bytes where 1 to 41 are due"},
      {Content::weights, ten, Packed(42, 1), "a packed chunk has 42 bytes where 1 to 41 are due"},
      {Content::gradient, ten, Packed(40, 0), "a raw chunk has 40 bytes where 41 are due"},
      {Content::gradient, ten, {7, 0}, "a packed chunk is of format 7, this program knows 0 and 1"},
      {Content::weights, ten, Packed(long_code.begin(), long_code.begin() + 41),
       "a packed chunk has a code that is too long"},
      {Content::weights, ten, {1, 120}, "a packed chunk has a code that is too long"},
      // 41 zeros, the least number that is too great, fit into a word.
      {Content::weights,
       ten,
       {1, 120, 0, 0, 0, 0, 0, 2, 255, 255},
       "a packed chunk has a code that is too long"},
      // A weight of 0 is granted 32 bits here, and the symbol wants one more.
      {Content::weights, one, {1, 254, 2, 0}, "a packed chunk has a field of over 32 bits"},
      {Content::gradient,
       Bits(2, 0),
       {1, 0, 0b101, 0, 0, 0, 0, 0, 0},
       "a packed chunk has an exponent that is none"},
      // Ten codes of symbol 0 are all that ten weights of 1 take which are granted no bit; with
      // base 128 each is granted one.
      {Content::weights, ten, {1, 127, 255, 3}, ""},
      {Content::weights, ten, {1, 128, 255, 3}, "a packed chunk ends before its values do"},
      {Content::weights, ten, {1, 127, 255, 3, 0}, "a packed chunk goes on behind its values"},
      {Content::weights, ten, {1, 127, 255, 7}, "a packed chunk goes on behind its values"},
  };
  for (const Wrong& wrong : all)
    EXPECT_EQ(unpack_by_all(wrong.content, wrong.packed, wrong.before).error, wrong.says);
}

}  // namespace
}  // namespace duplex::net
