// A bfloat16 is the half of a float32 that holds its sign, its exponent and seven bits of its
// fraction. Tensors of --precision bf16 are stored in it; arithmetic is float32's.
#pragma once
#include <cstdint>
#include <cstring>

#include "core/cudnn/kernels/portable.h"

namespace duplex::cudnn {

struct BFloat16 {
  std::uint16_t bits;

  BFloat16() = default;
  /// Rounds to the nearest; halfway, to the one whose last bit is zero. NaN stays NaN.
  DUPLEX_PORTABLE BFloat16(float value) : bits(rounded(value)) {}
  DUPLEX_PORTABLE operator float() const {
    const std::uint32_t wide = std::uint32_t{bits} << 16U;
    float value = 0.0F;
    memcpy(&value, &wide, sizeof value);
    return value;
  }

  /// Returns the bits of two values as they lie in the memory of little-endian machines.
  DUPLEX_PORTABLE static std::uint32_t pair(float first, float second) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    std::uint32_t both = 0;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
    return both;
#else
    return std::uint32_t{rounded(first)} | std::uint32_t{rounded(second)} << 16U;
#endif
  }

 private:
  DUPLEX_PORTABLE static std::uint16_t rounded(float value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    std::uint16_t bits = 0;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
#else
    std::uint32_t wide = 0;
    memcpy(&wide, &value, sizeof wide);
    if (value != value) return static_cast<std::uint16_t>((wide >> 16U) | 0x40U);
    wide += 0x7FFFU + ((wide >> 16U) & 1U);
    return static_cast<std::uint16_t>(wide >> 16U);
#endif
  }
};

}  // namespace duplex::cudnn
