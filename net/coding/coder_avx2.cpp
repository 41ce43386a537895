// The coder for processors with AVX2: the plain one, which the compiler turns into their vectors.
#ifdef __x86_64__
#include "net/coding/coders.h"
#include "net/coding/gradient_block.h"
#include "net/coding/pack_chunk.h"
#include "net/coding/unpack_chunk.h"
#include "net/coding/weight_block.h"

#define DUPLEX_AVX2 [[gnu::target("avx2,bmi,bmi2,popcnt")]]

namespace duplex::net::coding {
namespace {

DUPLEX_AVX2 std::size_t pack_weights(const float* now, const float* before, std::size_t count,
                                     std::uint8_t* to) {
  return pack_chunk<WeightBlock>(now, before, count, to);
}

DUPLEX_AVX2 void unpack_weights(const std::uint8_t* from, std::size_t size, float* weights,
                                std::size_t count) {
  unpack_chunk<WeightBlock, PlainSteps>(from, size, weights, count);
}

DUPLEX_AVX2 std::size_t pack_gradient(const float* gradient, std::size_t count, std::uint8_t* to) {
  return pack_chunk<GradientBlock>(gradient, gradient, count, to);
}

DUPLEX_AVX2 void unpack_gradient(const std::uint8_t* from, std::size_t size, float* gradient,
                                 std::size_t count) {
  unpack_chunk<GradientBlock, PlainSteps>(from, size, gradient, count);
}

}  // namespace

const LosslessCoder avx2_coder{"AVX2", pack_weights, unpack_weights, pack_gradient,
                               unpack_gradient};

}  // namespace duplex::net::coding

#endif
