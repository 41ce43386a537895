#include "core/factors/outer_products.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "core/clock.h"
#include "core/factors/tiles.h"

namespace duplex {
namespace {

using factors::tile_height, factors::tile_width;

factors::Tile tile_here() {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx512f")) return factors::avx512_tile;
  if (__builtin_cpu_supports("fma")) return factors::fma_tile;
  return factors::sse2_tile;
#else
  return factors::plain_tile;
#endif
}

/// Copies the values `from`, (samples, count), each times `factor`, to columns that begin at sample
/// `sample` of `samples` of `to`, which is (count / group, samples, group).
void in_groups(const float* from, std::size_t count, std::size_t taken, float factor,
               std::size_t group, std::size_t sample, std::size_t samples, float* to) {
  for (std::size_t k = 0; k < taken; ++k)
    for (std::size_t begin = 0; begin < count; begin += group) {
      const std::size_t here = std::min(group, count - begin);
      float* at = to + (begin / group * samples + sample + k) * group;
      for (std::size_t i = 0; i < here; ++i) at[i] = from[k * count + begin + i] * factor;
    }
}

std::size_t groups_of(std::size_t count, std::size_t group) {
  return (count + group - 1) / group;
}

}  // namespace

void OuterProducts::take(const std::vector<FactorBlock>& blocks) {
  samples_ = 0;
  for (const FactorBlock& block : blocks) samples_ += block.samples;
  dy_.assign(groups_of(outputs_, tile_height) * samples_ * tile_height, 0.0F);
  x_.assign(groups_of(inputs_, tile_width) * samples_ * tile_width, 0.0F);
  std::size_t sample = 0;
  for (const FactorBlock& block : blocks) {
    in_groups(block.dy, outputs_, block.samples, block.weight, tile_height, sample, samples_,
              dy_.data());
    in_groups(block.x, inputs_, block.samples, 1.0F, tile_width, sample, samples_, x_.data());
    sample += block.samples;
  }
}

void OuterProducts::rows(std::size_t first, std::size_t end, float* to) const {
  static const factors::Tile compute = tile_here();
  const auto groups = [&](std::size_t begin, std::size_t last, float* out) {
    // A tile's x stays in the cache for all groups of rows.
    for (std::size_t column = 0; column < inputs_; column += tile_width)
      for (std::size_t row = begin; row < last; row += tile_height)
        compute(dy_.data() + row * samples_, x_.data() + column * samples_, samples_,
                out + (row - begin) * inputs_ + column, inputs_, std::min(tile_height, last - row),
                std::min(tile_width, inputs_ - column));
  };
  const std::size_t before = first % tile_height, begin = first - before;
  if (before != 0) {  // Rows that begin within a group are computed with it, and left out.
    const std::size_t last = std::min(begin + tile_height, end);
    std::vector<float> group((last - begin) * inputs_);
    groups(begin, last, group.data());
    std::copy(group.begin() + static_cast<std::ptrdiff_t>(before * inputs_), group.end(), to);
    to += (last - first) * inputs_;
    first = last;
  }
  groups(first, end, to);
}

void OuterProducts::bias(float* to) const {
  for (std::size_t row = 0; row < outputs_; ++row) {
    const float* dy = dy_.data() + row / tile_height * tile_height * samples_ + row % tile_height;
    float sum = 0.0F;
    for (std::size_t k = 0; k < samples_; ++k) sum += dy[k * tile_height];
    to[row] = sum;
  }
}

double OuterProducts::operations_a_second() {
  constexpr std::size_t outputs = 16 * rows_at_once, inputs = 4096, samples = 128;
  const std::vector<float> dy(samples * outputs, 0.5F), x(samples * inputs, 0.25F);
  OuterProducts products(outputs, inputs);
  products.take({{dy.data(), x.data(), samples, 1.0F}});
  std::vector<float> sums(outputs * inputs);
  std::array<double, 5> seconds{};
  for (double& took : seconds) {
    const auto begin = Clock::now();
    products.rows(0, outputs, sums.data());
    took = std::chrono::duration<double>(Clock::now() - begin).count();
  }
  std::sort(seconds.begin(), seconds.end());
  return products.flop(samples) / seconds[seconds.size() / 2];
}

}  // namespace duplex
