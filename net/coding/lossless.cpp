#include "net/coding/lossless.h"

#include "net/coding/coders.h"

namespace duplex::net {

std::size_t pack_weights(const float* now, const float* before, std::size_t count,
                         std::uint8_t* to) {
  return lossless_coders().back().pack_weights(now, before, count, to);
}

void unpack_weights(const std::uint8_t* from, std::size_t size, float* weights, std::size_t count) {
  lossless_coders().back().unpack_weights(from, size, weights, count);
}

std::size_t pack_gradient(const float* gradient, std::size_t count, std::uint8_t* to) {
  return lossless_coders().back().pack_gradient(gradient, count, to);
}

void unpack_gradient(const std::uint8_t* from, std::size_t size, float* gradient,
                     std::size_t count) {
  lossless_coders().back().unpack_gradient(from, size, gradient, count);
}

}  // namespace duplex::net
