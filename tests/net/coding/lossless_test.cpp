// Packed chunks come out as they went in, to the bit, whatever the bits are; and they are what
// PROTOCOL.md says.
#include "net/coding/lossless.h"

#include <gtest/gtest.h>

#include <random>
#include <sstream>
#include <thread>

#include "core/processor/denormals.h"
#include "tests/net/coding/packing.h"
#include "tests/net/coding/reference_decoder.h"
#include "tests/net/protocol_page.h"

namespace duplex::net {
namespace {

/// New and old values of a chunk.
struct Chunk {
  Bits now, before;
};

/// Bytes of a packed chunk.
struct Sizes {
  std::size_t weights = 0, gradient = 0;
};

/// Packs the chunk by every coder, both as weights and as a gradient. All must make the same bytes,
/// out of which every coder and the reference must make the values again.
Sizes go_round(const Chunk& chunk) {
  Sizes sizes;
  for (const Content content : contents) {
    const Packed packed = pack(lossless_coders().front(), content, chunk.now, chunk.before);
    for (const LosslessCoder& coder : lossless_coders()) {
      EXPECT_EQ(pack(coder, content, chunk.now, chunk.before), packed) << coder.name;
      const Unpacked out = unpack(coder, content, packed, chunk.before);
      EXPECT_EQ(out.error, "") << coder.name;
      EXPECT_TRUE(out.bits == chunk.now) << coder.name << ", " << chunk.now.size() << " values";
    }
    ReferenceDecoder reference(packed);
    EXPECT_TRUE((content == Content::weights ? reference.weights(chunk.before)
                                             : reference.gradient(chunk.now.size())) == chunk.now);
    EXPECT_TRUE(reference.at_end());
    (content == Content::weights ? sizes.weights : sizes.gradient) = packed.size();
  }
  return sizes;
}

/// Weights as a network has them and an update by a small part of them; some do not change.
Chunk trained(std::size_t count) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  Chunk chunk;
  for (std::size_t i = 0; i < count; ++i) {
    const float before = 0.05F * normal(random), step = 1e-4F * normal(random);
    chunk.before.push_back(bits_of(before));
    chunk.now.push_back(bits_of(random() % 10 == 0 ? before : before + step));
  }
  return chunk;
}

/// A gradient, of which a tenth is 0.
Bits gradient_of(std::size_t count) {
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  Bits bits;
  for (std::size_t i = 0; i < count; ++i)
    bits.push_back(bits_of(random() % 10 == 0 ? 0 : 1e-3F * normal(random)));
  return bits;
}

Chunk any_bits(std::size_t count) {
  std::mt19937 random(1);
  Chunk chunk;
  for (std::size_t i = 0; i < count; ++i) {
    chunk.before.push_back(static_cast<std::uint32_t>(random()));
    chunk.now.push_back(static_cast<std::uint32_t>(random()));
  }
  return chunk;
}

/// Reads "3dccccd5 be000000".
template <class Number>
std::vector<Number> hexadecimal(const std::string& text) {
  std::vector<Number> numbers;
  std::istringstream words(text);
  for (std::string word; words >> word;)
    numbers.push_back(static_cast<Number>(std::stoul(word, nullptr, 16)));
  return numbers;
}

// PROTOCOL.md has these examples in a table.
TEST(Lossless, MakesTheBytesOfTheProtocol) {
  int examples = 0;
  for (const auto& row : table_of("Packed chunks")) {
    if (row.size() != 4 || (row[0] != "weights" && row[0] != "gradient")) continue;
    ++examples;
    const Content content = row[0] == "weights" ? Content::weights : Content::gradient;
    const Bits now = hexadecimal<std::uint32_t>(row[1]),
               before = hexadecimal<std::uint32_t>(row[2]);
    for (const LosslessCoder& coder : lossless_coders())
      EXPECT_EQ(pack(coder, content, now, before), hexadecimal<std::uint8_t>(row[3]))
          << coder.name << ": " << row[1];
  }
  EXPECT_GE(examples, 4);
}

TEST(Lossless, KeepsEveryBitOfAnyNumberOfValues) {
  for (std::size_t count = 1; count <= 200; ++count) {
    go_round(trained(count));
    go_round({gradient_of(count), trained(count).now});
    go_round(any_bits(count));
  }
  for (const std::size_t count : {4096, 131072 - 63, 131072}) {
    go_round(trained(count));
    go_round({gradient_of(count), trained(count).now});
  }
}

TEST(Lossless, KeepsSpecialValues) {
  const Bits special{0,          1,          2,          0x007FFFFF, 0x00800000, 0x00800001,
                     0x3F7FFFFF, 0x3F800000, 0x3F800001, 0x7F7FFFFF, 0x7F800000, 0x7F800001,
                     0x7FBFFFFF, 0x7FC00000, 0x7FFFFFFF, 0x01234567, 0x33D6BF95, 0x3DCCCCCD};
  Bits both_signs = special;
  for (const std::uint32_t bits : special) both_signs.push_back(bits | 0x80000000);
  // Every one becomes every one; and each stands alone among zeros, among ones, and everywhere.
  Chunk pairs;
  for (const std::uint32_t before : both_signs)
    for (const std::uint32_t now : both_signs) {
      pairs.before.push_back(before);
      pairs.now.push_back(now);
      Chunk single;
      single.before.assign(65, 0x3DCCCCCD);
      single.now = single.before;
      single.before[7] = before;
      single.now[7] = now;
      go_round(single);
      go_round({Bits(70, now), Bits(70, before)});
    }
  go_round(pairs);
}

TEST(Lossless, KeepsEveryExponentAndEveryWidth) {
  Chunk exponents, widths;
  for (std::uint32_t exponent = 0; exponent < 256; ++exponent)
    for (std::uint32_t sign = 0; sign < 2; ++sign) {
      const std::uint32_t bits = sign << 31 | exponent << 23 | 0x2AAAAA;
      exponents.before.push_back(bits);
      exponents.now.push_back(bits ^ 0x155);
      for (std::uint32_t width = 0; width < 32; ++width) {
        widths.before.push_back(bits);
        widths.now.push_back(bits + (1U << width));
        widths.before.push_back(bits);
        widths.now.push_back(bits - (1U << width));
      }
    }
  go_round(exponents);
  go_round(widths);
}

// A thread that computes with oneDNN takes denormals for 0.
TEST(Lossless, KeepsDenormalsWhereTheyAreFlushed) {
  std::thread([] {
    flush_denormals();
    Chunk chunk;
    for (std::uint32_t i = 0; i < 300; ++i) {
      chunk.before.push_back(i * 7919 & 0x807FFFFF);
      chunk.now.push_back((i * 7919 + i) & 0x807FFFFF);
    }
    go_round(chunk);
  }).join();
}

TEST(Lossless, TakesLittleForWhatHardlyChanges) {
  const std::size_t count = 131072, raw = 4 * count;
  const Chunk chunk = trained(count);
  EXPECT_LT(go_round({chunk.before, chunk.before}).weights, raw / 32 * 5);  // 4 bits and bases.
  Chunk neighbours = chunk;
  for (std::uint32_t& bits : neighbours.now) bits ^= 1;
  EXPECT_LT(go_round({neighbours.now, chunk.now}).weights, raw / 8);
  EXPECT_LT(go_round({Bits(count, 0), Bits(count, 0)}).gradient, raw / 32 * 5);
  EXPECT_LT(go_round(chunk).weights, raw * 55 / 100);
  EXPECT_LT(go_round({gradient_of(count), chunk.now}).gradient, raw * 81 / 100);
}

TEST(Lossless, SendsWhatDoesNotShrinkRaw) {
  for (const std::size_t count : {std::size_t{64}, std::size_t{1000}, std::size_t{131072}}) {
    const Sizes sizes = go_round(any_bits(count));
    EXPECT_EQ(sizes.weights, 1 + 4 * count);
    EXPECT_EQ(sizes.gradient, 1 + 4 * count);
  }
  // One block in two shrinks: the others are raw, and take a byte more.
  Chunk mixed = trained(64 * 100);
  const Chunk noise = any_bits(64 * 100);
  for (std::size_t i = 0; i < mixed.now.size(); ++i)
    if (i / 64 % 2 == 1) mixed.now[i] = noise.now[i];
  const Sizes sizes = go_round(mixed);
  EXPECT_LT(sizes.weights, 4 * 6400 * 80 / 100);
  EXPECT_LT(sizes.gradient, 4 * 6400 * 95 / 100);
  EXPECT_GT(sizes.weights, 50U * 257);
}

TEST(Lossless, TheFunctionsAreThoseOfTheFastestCoder) {
  const Chunk chunk = trained(1000);
  Packed weights(packed_limit(1000) + packing_slack), gradient = weights;
  const auto* now = reinterpret_cast<const float*>(chunk.now.data());
  weights.resize(
      pack_weights(now, reinterpret_cast<const float*>(chunk.before.data()), 1000, weights.data()));
  gradient.resize(pack_gradient(now, 1000, gradient.data()));
  const LosslessCoder& plain = lossless_coders().front();
  EXPECT_EQ(weights, pack(plain, Content::weights, chunk.now, chunk.before));
  EXPECT_EQ(gradient, pack(plain, Content::gradient, chunk.now, chunk.before));
  Bits out = chunk.before;
  unpack_weights(weights.data(), weights.size(), reinterpret_cast<float*>(out.data()), 1000);
  EXPECT_EQ(out, chunk.now);
  std::fill(out.begin(), out.end(), 0);
  unpack_gradient(gradient.data(), gradient.size(), reinterpret_cast<float*>(out.data()), 1000);
  EXPECT_EQ(out, chunk.now);
}

}  // namespace
}  // namespace duplex::net
