// Tests sums of outer products against the sum in double precision, that they have the bits of
// plain loops on every processor, and that no cut of rows or blocks changes one.
#include "core/factors/outer_products.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "core/factors/fused.h"
#include "core/random.h"

namespace duplex {
namespace {

std::vector<float> drawn(std::size_t count, std::uint64_t stream) {
  std::vector<float> values(count);
  RandomStream(3, stream).fill_uniform(values.data(), count);
  for (float& value : values) value -= 0.5F;
  return values;
}

struct Case {
  std::size_t outputs, inputs;
  std::vector<std::size_t> samples;  ///< By block.
};

struct Drawn {
  std::vector<std::vector<float>> dy, x;
  std::vector<FactorBlock> blocks;
};

Drawn draw(const Case& c) {
  Drawn drawn_here;
  for (std::size_t i = 0; i < c.samples.size(); ++i) {
    drawn_here.dy.push_back(drawn(c.samples[i] * c.outputs, 2 * i));
    drawn_here.x.push_back(drawn(c.samples[i] * c.inputs, 2 * i + 1));
    drawn_here.blocks.push_back({drawn_here.dy.back().data(), drawn_here.x.back().data(),
                                 c.samples[i], 1.0F / static_cast<float>(i + 1)});
  }
  return drawn_here;
}

/// Computes the same by plain loops in float32, in the order that is promised.
std::vector<float> plain(const Case& c, const Drawn& from) {
  std::vector<float> sums(c.outputs * c.inputs, 0.0F);
  for (const FactorBlock& block : from.blocks)
    for (std::size_t k = 0; k < block.samples; ++k)
      for (std::size_t r = 0; r < c.outputs; ++r) {
        const float dy = block.dy[k * c.outputs + r] * block.weight;
        for (std::size_t i = 0; i < c.inputs; ++i)
          sums[r * c.inputs + i] = std::fma(dy, block.x[k * c.inputs + i], sums[r * c.inputs + i]);
      }
  return sums;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

class OuterProductsOf : public testing::TestWithParam<Case> {};

TEST_P(OuterProductsOf, HaveTheBitsOfPlainLoops) {
  const Case& c = GetParam();
  const Drawn from = draw(c);
  OuterProducts products(c.outputs, c.inputs);
  products.take(from.blocks);
  const std::vector<float> due = plain(c, from);
  std::vector<float> sums(due.size(), -1.0F);
  products.rows(0, c.outputs, sums.data());
  EXPECT_TRUE(same_bits(sums, due));

  for (const std::size_t share : {std::size_t{1}, std::size_t{4}, OuterProducts::rows_at_once}) {
    std::vector<float> shared(due.size(), -1.0F);
    for (std::size_t row = 0; row < c.outputs; row += share)
      products.rows(row, std::min(row + share, c.outputs), shared.data() + row * c.inputs);
    EXPECT_TRUE(same_bits(shared, due)) << "shares of " << share;
  }
}

TEST_P(OuterProductsOf, AreTheEquations) {
  const Case& c = GetParam();
  const Drawn from = draw(c);
  OuterProducts products(c.outputs, c.inputs);
  products.take(from.blocks);
  std::vector<float> sums(c.outputs * c.inputs), bias(c.outputs);
  products.rows(0, c.outputs, sums.data());
  products.bias(bias.data());
  for (std::size_t r = 0; r < c.outputs; ++r) {
    double due_bias = 0.0;
    for (const FactorBlock& block : from.blocks)
      for (std::size_t k = 0; k < block.samples; ++k)
        due_bias += double{block.weight} * double{block.dy[k * c.outputs + r]};
    ASSERT_NEAR(bias[r], due_bias, 1e-5);
    for (std::size_t i = 0; i < c.inputs; ++i) {
      double due = 0.0;
      for (const FactorBlock& block : from.blocks)
        for (std::size_t k = 0; k < block.samples; ++k)
          due += double{block.weight} * double{block.dy[k * c.outputs + r]} *
                 double{block.x[k * c.inputs + i]};
      ASSERT_NEAR(sums[r * c.inputs + i], due, 1e-5) << r << ", " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, OuterProductsOf,
                         testing::Values(Case{1, 1, {1}}, Case{6, 32, {2}}, Case{7, 33, {1, 2, 3}},
                                         Case{10, 500, {4, 4}}, Case{13, 31, {5}},
                                         Case{64, 100, {16, 16, 15}}, Case{5, 70, {0, 3}}));

float of_bits(std::uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// Returns whether it is what fma of C returns; one NaN is like another.
bool is_fma(float result, float a, float b, float c) {
  const float due = std::fma(a, b, c);
  return std::memcmp(&result, &due, sizeof due) == 0 || (std::isnan(result) && std::isnan(due));
}

/// Draws operands of which many have products and sums half way between two values, small ones,
/// or none at all.
struct Operands {
  std::mt19937_64 bits{5};

  float next() {
    const std::uint64_t drawn = bits();
    const auto value = static_cast<std::uint32_t>(drawn);
    switch (drawn >> 61) {
      case 0:
        return of_bits(value);
      case 1:
        return of_bits(value & 0x807fffffU);  // Small.
      case 2:
        return of_bits((value & 0x80000000U) | 0x7f800000U);  // Infinite.
      case 3:
        return of_bits(value & 0x80000000U);  // Zero.
      default:
        return of_bits((value & 0x83fff000U) | (drawn & 1 ? 0x3c000000U : 0x3c000001U));
    }
  }
};

TEST(Fused, IsFma) {
  Operands operands;
  for (int i = 0; i < 2000000; ++i) {
    const float a = operands.next(), b = operands.next(), c = operands.next();
    ASSERT_TRUE(is_fma(factors::fused(a, b, c), a, b, c)) << a << " * " << b << " + " << c;
  }
  // Half way between 1 and the next value, but for the last bit of the product.
  const float one = 1.0F, tiny = std::ldexp(1.0F, -24), more = 1.0F + std::ldexp(1.0F, -23);
  EXPECT_EQ(factors::fused(tiny, one, one), one);
  EXPECT_GT(factors::fused(tiny, more, one), one);
}

TEST(Tiles, AllComputeTheSameBits) {
  using factors::tile_height, factors::tile_width;
  struct Named {
    std::string name;
    factors::Tile compute;
  };
  std::vector<Named> tiles{{"plain", factors::plain_tile}};
#ifdef __x86_64__
  tiles.push_back({"SSE2", factors::sse2_tile});
  if (__builtin_cpu_supports("fma")) tiles.push_back({"FMA", factors::fma_tile});
  if (__builtin_cpu_supports("avx512f")) tiles.push_back({"AVX-512", factors::avx512_tile});
#endif
  Operands operands;
  for (int attempt = 0; attempt < 2000; ++attempt) {
    constexpr std::size_t samples = 3;
    float dy[samples * tile_height], x[samples * tile_width], due[tile_height * tile_width];
    for (float& value : dy) value = operands.next();
    for (float& value : x) value = operands.next();
    if (attempt == 0) {  // A sum among the smallest values, nearly half way between two of them.
      dy[0] = std::ldexp(1.0F, -127) + std::ldexp(1.0F, -149);
      dy[tile_height] = std::ldexp(1.0F + std::ldexp(1.0F, -23), -75);
      x[0] = 1.0F;
      x[tile_width] = std::ldexp(1.0F - std::ldexp(1.0F, -23), -75);
      dy[2 * tile_height] = x[2 * tile_width] = 0.0F;
      std::fill(x + 1, x + 4, 1.0F);  // Nothing else of the vector takes the slow way.
      std::fill(x + tile_width + 1, x + tile_width + 4, 1.0F);
      std::fill(x + 2 * tile_width + 1, x + 2 * tile_width + 4, 1.0F);
    }
    for (std::size_t i = 0; i < tile_height * tile_width; ++i) {
      due[i] = 0.0F;
      for (std::size_t k = 0; k < samples; ++k)
        due[i] = std::fma(dy[k * tile_height + i / tile_width], x[k * tile_width + i % tile_width],
                          due[i]);
    }
    for (const Named& tile : tiles) {
      float sums[tile_height * tile_width];
      tile.compute(dy, x, samples, sums, tile_width, tile_height, tile_width);
      for (std::size_t i = 0; i < tile_height * tile_width; ++i)
        ASSERT_TRUE(std::memcmp(&sums[i], &due[i], sizeof(float)) == 0 ||
                    (std::isnan(sums[i]) && std::isnan(due[i])))
            << tile.name << ": " << sums[i] << " is due as " << due[i];
    }
  }
}

/// Taking other samples leaves nothing of those before.
TEST(OuterProducts, TakesOthersAnew) {
  const Case long_one{7, 40, {9}}, short_one{7, 40, {2}};
  OuterProducts products(7, 40);
  products.take(draw(long_one).blocks);
  const Drawn from = draw(short_one);
  products.take(from.blocks);
  std::vector<float> sums(7 * 40);
  products.rows(0, 7, sums.data());
  EXPECT_TRUE(same_bits(sums, plain(short_one, from)));
}

}  // namespace
}  // namespace duplex
