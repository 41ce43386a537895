#include "layers/plan/memory_plan.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"

namespace duplex {
namespace {

constexpr std::size_t most_bytes = std::size_t{1} << 62;

}  // namespace

MemoryPlan plan_memory(const std::vector<Lifetime>& lifetimes) {
  MemoryPlan plan;
  plan.offsets.resize(lifetimes.size());
  std::vector<std::size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return lifetimes[a].bytes > lifetimes[b].bytes;
  });
  const auto rounded = [](std::size_t bytes) {
    return (bytes + MemoryPlan::alignment - 1) / MemoryPlan::alignment * MemoryPlan::alignment;
  };

  std::vector<std::size_t> placed;  // Blocks, ascending by offset.
  for (std::size_t block : order) {
    const std::size_t bytes = rounded(lifetimes[block].bytes);
    std::size_t offset = 0;
    for (std::size_t other : placed) {
      const bool together = lifetimes[block].first <= lifetimes[other].last &&
                            lifetimes[other].first <= lifetimes[block].last;
      if (!together) continue;
      if (offset + bytes <= plan.offsets[other]) break;
      offset = std::max(offset, plan.offsets[other] + rounded(lifetimes[other].bytes));
    }
    if (bytes > most_bytes - offset)
      throw Error("a batch of these layers takes more than 2^62 bytes; give a smaller one");
    plan.offsets[block] = offset;
    plan.bytes = std::max(plan.bytes, offset + bytes);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), offset,
                                   [&](std::size_t value, std::size_t index) {
                                     return value < plan.offsets[index];
                                   }),
                  block);
  }
  return plan;
}

}  // namespace duplex
