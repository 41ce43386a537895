#include "core/onednn/max_pool.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/onednn/clones.h"
#include "core/onednn/parallel.h"

namespace duplex::onednn {
namespace {

/// Channels that one step handles, whatever the processor's vectors.
constexpr std::int64_t lanes = 8;
using Floats = float __attribute__((vector_size(4 * lanes)));
using Ints = std::int32_t __attribute__((vector_size(4 * lanes)));
using Shorts = std::int16_t __attribute__((vector_size(2 * lanes)));

// Vectors go by reference: by value they would pass differently from processor to processor.

template <class Vector, class Element>
inline void load(Vector& to, const Element* from) {
  std::memcpy(&to, from, sizeof to);
}

template <class Vector, class Element>
inline void store(Element* to, const Vector& from) {
  std::memcpy(to, &from, sizeof from);
}

}  // namespace

/// One row of outputs, or of inputs, in `lanes` channels.
struct MaxPoolKernel::Row {
  const Axis* columns;
  Range rows;               ///< Forward: taps. Backward: outputs.
  std::int32_t first_tap;   ///< Number in its window of row 0 of `rows`, at column 0.
  std::int32_t window_width;
  std::int64_t count;       ///< Elements of this row.
  std::int64_t pixel;       ///< From one pixel to the next.
  std::int64_t line;        ///< From one row of what is gathered from to the next.
};

namespace {

/// y and winners of a row; `x` points at the row of tap 0, column 0, and may lie off the map there.
template <class Row>
DUPLEX_CLONES void forward_row(const Row& row, float* y, std::int16_t* winners, const float* x) {
  for (std::int64_t out = 0; out < row.count; ++out) {
    const auto taps = row.columns->taps[static_cast<std::size_t>(out)];
    const std::int64_t column = out * row.columns->stride - row.columns->before;
    Floats best = Floats{} - std::numeric_limits<float>::infinity();
    Ints winner = {};
    (void)taps; (void)column; (void)best; (void)winner; (void)y; (void)winners; (void)x;
  }
}

}  // namespace
}  // namespace duplex::onednn
