// The coder for processors with AVX-512 and its second set of instructions for bytes and shifts
// (Intel since Ice Lake, AMD since Zen 4).
#ifdef __x86_64__
#include <immintrin.h>

#include "net/coding/coders.h"
#include "net/coding/gradient_block.h"
#include "net/coding/pack_chunk.h"
#include "net/coding/unpack_chunk.h"
#include "net/coding/weight_block.h"

#define DUPLEX_AVX512 \
  [[gnu::target("avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,avx2,bmi,bmi2,popcnt")]]

namespace duplex::net::coding {
namespace {

using Lanes = std::uint32_t __attribute__((vector_size(64)));
using Bytes = std::uint8_t __attribute__((vector_size(64)));

alignas(64) constexpr std::uint8_t numbers[64] = {
    0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
    22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
    44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};

/// Does the steps of PlainSteps (unpack_chunk.h). A function of immintrin.h with a mask of ones, as
/// some here have, does the same as one without; about the latter g++ 12 warns that it uses what is
/// not initialised.
struct WideSteps {
  DUPLEX_AVX512 static std::size_t ones(std::uint64_t bits, std::size_t first, std::uint8_t* to) {
    Bytes all;
    std::memcpy(&all, numbers, sizeof all);
    all += static_cast<std::uint8_t>(first);
    const __m512i set = _mm512_maskz_compress_epi8(bits, reinterpret_cast<__m512i>(all));
    std::memcpy(to, &set, sizeof set);
    return static_cast<std::size_t>(__builtin_popcountll(bits));
  }

  /// Takes 16 fields at once out of the 1024 bits in which they lie: each out of the two words that
  /// it may lie in, which one instruction shifts as if they were one.
  DUPLEX_AVX512 static std::size_t fields(Block& block, const std::uint8_t* stream,
                                          std::size_t bit) {
    constexpr __mmask16 all = 0xFFFF;
    const __m512i none = _mm512_setzero_si512(), one = _mm512_set1_epi32(1);
    for (int i = 0; i < block_values; i += 16) {
      const std::uint8_t* here = stream + bit / 8;
      const __m512i low = _mm512_loadu_si512(here), high = _mm512_loadu_si512(here + 64);
      const __m512i lengths = _mm512_load_si512(block.lengths + i);

      __m512i ends = lengths;  // The sums of the lengths up to each field.
      ends = _mm512_add_epi32(ends, _mm512_maskz_alignr_epi32(all, ends, none, 15));
      ends = _mm512_add_epi32(ends, _mm512_maskz_alignr_epi32(all, ends, none, 14));
      ends = _mm512_add_epi32(ends, _mm512_maskz_alignr_epi32(all, ends, none, 12));
      ends = _mm512_add_epi32(ends, _mm512_maskz_alignr_epi32(all, ends, none, 8));
      const __m512i starts = _mm512_add_epi32(_mm512_sub_epi32(ends, lengths),
                                              _mm512_set1_epi32(static_cast<int>(bit % 8)));

      const __m512i word = _mm512_maskz_srli_epi32(all, starts, 5);
      const __m512i first = _mm512_permutex2var_epi32(low, word, high);
      const __m512i second = _mm512_permutex2var_epi32(low, _mm512_add_epi32(word, one), high);
      const __m512i beyond = _mm512_maskz_sllv_epi32(all, _mm512_set1_epi32(-1), lengths);
      const __m512i bits = _mm512_shrdv_epi32(first, second, starts);
      _mm512_store_si512(block.fields + i, _mm512_maskz_andnot_epi32(all, beyond, bits));
      bit += reinterpret_cast<Lanes>(ends)[15];
    }
    return bit;
  }
};

DUPLEX_AVX512 std::size_t pack_weights(const float* now, const float* before, std::size_t count,
                                       std::uint8_t* to) {
  return pack_chunk<WeightBlock>(now, before, count, to);
}

DUPLEX_AVX512 void unpack_weights(const std::uint8_t* from, std::size_t size, float* weights,
                                  std::size_t count) {
  unpack_chunk<WeightBlock, WideSteps>(from, size, weights, count);
}

DUPLEX_AVX512 std::size_t pack_gradient(const float* gradient, std::size_t count,
                                        std::uint8_t* to) {
  return pack_chunk<GradientBlock>(gradient, gradient, count, to);
}

DUPLEX_AVX512 void unpack_gradient(const std::uint8_t* from, std::size_t size, float* gradient,
                                   std::size_t count) {
  unpack_chunk<GradientBlock, WideSteps>(from, size, gradient, count);
}

}  // namespace

const LosslessCoder avx512_coder{"AVX-512", pack_weights, unpack_weights, pack_gradient,
                                 unpack_gradient};

}  // namespace duplex::net::coding

#endif
