// The body of the kernel that sums the gradients of an addition's result and, in the same pass,
// what batch normalisation's backward sums of them (elements.h, statistics.h).
#pragma once
#include <cstdint>

#include "core/cudnn/kernels/elements.h"
#include "core/cudnn/kernels/statistics.h"

namespace duplex::cudnn {

/// Writes dy, and sums it as it is stored: the bits are those of MaskedSum, then GradientSums.
template <class Value, class Inputs = GivenInputs<Value>>
struct SummedGradients {
  View view;
  MaskedSum<Value, Inputs> dy;
  GradientSums<Value> sums;  ///< It reads no dy from memory.

  static constexpr int group = group_of<Value>;
  bool grouped() const { return dy.grouped() && sums.grouped(); }
  template <int N>
  DUPLEX_PORTABLE Pairs<N> terms(std::uint32_t i, std::uint32_t c) const {
    const Floats<N> value = load<N>(sums.x + i);
    Floats<N> stored = dy.template values<N>(i);
    store(dy.out + i, stored);
    for (int k = 0; k < N; ++k) stored[k] = Value(stored[k]);
    return sums.terms(stored, value, c);
  }
  DUPLEX_PORTABLE void finish(std::uint32_t c, double sum, double with_xhat) const {
    sums.finish(c, sum, with_xhat);
  }
};

}  // namespace duplex::cudnn
