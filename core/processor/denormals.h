// Numbers too small for a float's full precision ("denormal", below 1.2e-38) are computed a hundred
// times as slowly as others. Training makes them: the moments of Adam (Algorithm 3.2) and momentum
// (3.2) of a weight without gradient decay towards 0 and are denormal after some hundred steps.
#pragma once
#if defined(__SSE__) || defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace duplex {

/// Makes denormal results and operands count as 0 from here on, in this thread and in those that it
/// starts.
inline void flush_denormals() {
#if defined(__SSE__) || defined(__x86_64__)
  constexpr unsigned flush_results = 0x8000, operands_are_zero = 0x0040;
  _mm_setcsr(_mm_getcsr() | flush_results | operands_are_zero);
#elif defined(__aarch64__)
  constexpr unsigned long flush = 1UL << 24;
  unsigned long control = 0;
  asm volatile("mrs %0, fpcr" : "=r"(control));
  asm volatile("msr fpcr, %0" ::"r"(control | flush));
#endif
}

}  // namespace duplex
