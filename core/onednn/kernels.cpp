#include "core/onednn/kernels.h"

#include <algorithm>
#include <cstring>

#include "core/onednn/parallel.h"
#include "core/processor/clones.h"

namespace duplex::onednn {

DUPLEX_CLONES void relu(float* to, const float* x, std::int64_t count) {
  DUPLEX_INDEPENDENT
  for (std::int64_t i = 0; i < count; ++i) to[i] = x[i] <= 0.0F ? 0.0F : x[i];
}

DUPLEX_CLONES void mask(float* to, const float* from, const float* y, std::int64_t count) {
  DUPLEX_INDEPENDENT
  for (std::int64_t i = 0; i < count; ++i) {
    const float value = from[i];
    to[i] = y[i] > 0.0F ? value : 0.0F;
  }
}

DUPLEX_CLONES void add(float* to, const float* a, const float* b, std::int64_t count) {
  DUPLEX_INDEPENDENT
  for (std::int64_t i = 0; i < count; ++i) to[i] = a[i] + b[i];
}

DUPLEX_CLONES void add_relu(float* to, const float* a, const float* b, std::int64_t count) {
  DUPLEX_INDEPENDENT
  for (std::int64_t i = 0; i < count; ++i) {
    const float sum = a[i] + b[i];
    to[i] = sum <= 0.0F ? 0.0F : sum;
  }
}

DUPLEX_CLONES bool finite(const float* values, std::int64_t count) {
  constexpr std::uint32_t exponent = 0x7F800000;  // Only infinities and NaN have all these bits.
  std::uint32_t greatest = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, values + i, sizeof bits);
    greatest = std::max(greatest, bits & exponent);
  }
  return greatest != exponent;
}

DUPLEX_CLONES void multiply(float* to, const float* a, const float* b, std::int64_t count) {
  DUPLEX_INDEPENDENT
  for (std::int64_t i = 0; i < count; ++i) to[i] = a[i] * b[i];
}

DUPLEX_CLONES void sigmoid_backward(float* to, const float* dy, const float* y,
                                    std::int64_t count) {
  DUPLEX_INDEPENDENT
  for (std::int64_t i = 0; i < count; ++i) to[i] = dy[i] * y[i] * (1.0F - y[i]);
}

void sum_masked(float* to, const std::vector<const float*>& inputs, const float* y,
                std::int64_t begin, std::int64_t end) {
  if (inputs.size() == 1 && y != nullptr)
    return mask(to + begin, inputs[0] + begin, y + begin, end - begin);
  // It sums by pieces that stay in the first-level cache, in a buffer of its own, since `to` may be
  // any of the inputs.
  constexpr std::int64_t piece = 2048;
  float buffer[piece];
  for (std::int64_t i = begin; i < end; i += piece) {
    const std::int64_t count = std::min(piece, end - i);
    const float* total = inputs[0] + i;
    for (std::size_t k = 1; k < inputs.size(); ++k) {
      const bool last = k + 1 == inputs.size() && y == nullptr;
      float* target = last ? to + i : buffer;
      add(target, total, inputs[k] + i, count);
      total = target;
    }
    if (y != nullptr) {
      mask(to + i, total, y + i, count);
    } else if (total != to + i) {
      std::copy(total, total + count, to + i);
    }
  }
}

void relu_in_place(Tensor& y) {
  parallel_elements(y.stored(), [&](std::int64_t begin, std::int64_t end) {
    relu(y.data + begin, y.data + begin, end - begin);
  });
}

}  // namespace duplex::onednn
