// The coder for every processor.
#include "net/coding/coders.h"
#include "net/coding/gradient_block.h"
#include "net/coding/pack_chunk.h"
#include "net/coding/unpack_chunk.h"
#include "net/coding/weight_block.h"

namespace duplex::net::coding {
namespace {

std::size_t pack_weights(const float* now, const float* before, std::size_t count,
                         std::uint8_t* to) {
  return pack_chunk<WeightBlock>(now, before, count, to);
}

void unpack_weights(const std::uint8_t* from, std::size_t size, float* weights, std::size_t count) {
  unpack_chunk<WeightBlock, PlainSteps>(from, size, weights, count);
}

std::size_t pack_gradient(const float* gradient, std::size_t count, std::uint8_t* to) {
  return pack_chunk<GradientBlock>(gradient, gradient, count, to);
}

void unpack_gradient(const std::uint8_t* from, std::size_t size, float* gradient,
                     std::size_t count) {
  unpack_chunk<GradientBlock, PlainSteps>(from, size, gradient, count);
}

}  // namespace

const LosslessCoder plain_coder{"plain", pack_weights, unpack_weights, pack_gradient,
                                unpack_gradient};

}  // namespace duplex::net::coding
