// The half of a float32 that holds its sign, its exponent and seven bits of its fraction: what
// tensors of --precision bf16 are stored in. Arithmetic is float32's.
#pragma once
#include <cstdint>
#include <cstring>

#include "core/cudnn/portable.h"

namespace duplex::cudnn {

struct BFloat16 {
  std::uint16_t bits;

  BFloat16() = default;
  /// To the nearest; halfway, to the one whose last bit is zero. What is no number stays so.
  DUPLEX_PORTABLE BFloat16(float value) : bits(rounded(value)) {}
  DUPLEX_PORTABLE operator float() const {
    const std::uint32_t wide = std::uint32_t{bits} << 16U;
    float value = 0.0F;
    memcpy(&value, &wide, sizeof value);
    return value;
  }

 private:
  DUPLEX_PORTABLE static std::uint16_t rounded(float value) {
    std::uint32_t wide = 0;
    memcpy(&wide, &value, sizeof wide);
    if (value != value) return static_cast<std::uint16_t>((wide >> 16U) | 0x40U);
    wide += 0x7FFFU + ((wide >> 16U) & 1U);
    return static_cast<std::uint16_t>(wide >> 16U);
  }
};

}  // namespace duplex::cudnn
