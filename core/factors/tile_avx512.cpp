#ifdef __x86_64__
#include <cstddef>
#include <cstring>

#include "core/factors/tiles.h"
#ifndef __clang__  // g++ breaks vectors up before it inlines the function that has them.
#pragma GCC target("avx512f")
#endif
#include "core/factors/tile.h"

namespace duplex::factors {
namespace {

[[gnu::target("avx512f")]] void compute(const float* dy, const float* x, std::size_t samples,
                                        float* to, std::size_t stride, std::size_t rows,
                                        std::size_t here) {
  tile<16>(dy, x, samples, to, stride, rows, here);
}

}  // namespace

const Tile avx512_tile = compute;

}  // namespace duplex::factors
#endif
