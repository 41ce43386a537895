#include "core/factors/fused.h"
#include "core/factors/tile.h"

namespace duplex::factors {
namespace {

struct Lanes {
  struct Vector {
    float lane[4];
  };
  [[gnu::always_inline]] static void add_product(Vector& sum, float factor, const Vector& vector) {
    for (int i = 0; i < 4; ++i) sum.lane[i] = fused(factor, vector.lane[i], sum.lane[i]);
  }
};

void compute(const float* dy, const float* x, std::size_t samples, float* to, std::size_t stride,
             std::size_t rows, std::size_t here) {
  tile<Lanes>(dy, x, samples, to, stride, rows, here);
}

}  // namespace

const Tile plain_tile = compute;

}  // namespace duplex::factors
