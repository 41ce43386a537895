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

}  // namespace

const Tile plain_tile = tile<Lanes>;

}  // namespace duplex::factors
