// Tests sums of outer products against the sum in double precision, that they have the bits of
// plain loops, and that no cut of rows or blocks changes one.
#include "core/factors/outer_products.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <tuple>
#include <vector>

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
          sums[r * c.inputs + i] += dy * block.x[k * c.inputs + i];
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
