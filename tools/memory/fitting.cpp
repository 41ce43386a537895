#include "tools/memory/fitting.h"

#include <algorithm>

#include "layers/model.h"

namespace duplex::tools {
namespace {

/// A batch, and the memory that it needs.
struct Tried {
  std::int64_t batch = 0;
  double needs = 0.0;
};

/// Where the line through two of them comes to `limit`.
std::int64_t where(const Tried& a, const Tried& b, double limit) {
  const double slope = (b.needs - a.needs) / static_cast<double>(b.batch - a.batch);
  constexpr double farthest = 1e15;
  const double there =
      slope > 0.0 ? static_cast<double>(a.batch) + (limit - a.needs) / slope : farthest;
  return static_cast<std::int64_t>(std::clamp(there, 0.0, farthest));
}

}  // namespace

std::optional<std::int64_t> largest_batch(
    std::size_t limit, std::int64_t start,
    const std::function<std::size_t(std::int64_t batch)>& needs) {
  constexpr std::int64_t leap = 8;
  const auto bound = static_cast<double>(limit);
  const auto tried = [&](std::int64_t batch) {
    return Tried{batch, static_cast<double>(needs(batch))};
  };
  const Tried one = tried(1);
  if (one.needs > bound) return std::nullopt;
  Tried fits = one, over = tried(std::max<std::int64_t>(start, 2));
  while (over.needs <= bound) {
    fits = over;
    if (fits.batch >= most_images) return fits.batch;
    over = tried(std::min(
        std::clamp(where(one, fits, bound) + 1, fits.batch + 1, fits.batch * leap), most_images));
  }
  // A line tells the place, as long as every operation keeps to its algorithm; halving ends the
  // search in any case.
  for (bool halve = false; over.batch - fits.batch > 1; halve = !halve) {
    const std::int64_t guess = halve ? (fits.batch + over.batch) / 2 : where(fits, over, bound);
    const Tried next = tried(std::clamp(guess, fits.batch + 1, over.batch - 1));
    (next.needs <= bound ? fits : over) = next;
  }
  return fits.batch;
}

}  // namespace duplex::tools
