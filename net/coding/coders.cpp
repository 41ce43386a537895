#include "net/coding/coders.h"

namespace duplex::net {
namespace {

std::vector<LosslessCoder> coders_here() {
  std::vector<LosslessCoder> coders{coding::plain_coder};
#ifdef __x86_64__
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
                    __builtin_cpu_supports("bmi2");
  if (avx2) coders.push_back(coding::avx2_coder);
  if (avx2 && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2"))
    coders.push_back(coding::avx512_coder);
#endif
  return coders;
}

}  // namespace

const std::vector<LosslessCoder>& lossless_coders() {
  static const std::vector<LosslessCoder> coders = coders_here();
  return coders;
}

}  // namespace duplex::net
