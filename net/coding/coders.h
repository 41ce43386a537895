// The functions of lossless.h, compiled for several processors. All pack the same bytes and refuse
// the same ones.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace duplex::net {

struct LosslessCoder {
  const char* name;
  std::size_t (*pack_weights)(const float* now, const float* before, std::size_t count,
                              std::uint8_t* to);
  void (*unpack_weights)(const std::uint8_t* from, std::size_t size, float* weights,
                         std::size_t count);
  std::size_t (*pack_gradient)(const float* gradient, std::size_t count, std::uint8_t* to);
  void (*unpack_gradient)(const std::uint8_t* from, std::size_t size, float* gradient,
                          std::size_t count);
};

/// Returns the coders that this processor can run: the plain one first, the fastest last.
const std::vector<LosslessCoder>& lossless_coders();

namespace coding {
extern const LosslessCoder plain_coder;
#ifdef __x86_64__
extern const LosslessCoder avx2_coder;    ///< Needs AVX2, BMI1 and BMI2.
extern const LosslessCoder avx512_coder;  ///< Needs AVX-512 with BW, VL, VBMI and VBMI2, and BMI2.
#endif
}  // namespace coding

}  // namespace duplex::net
