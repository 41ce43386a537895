// Where tensors that do not live at the same time share memory: one arena, an offset each.
#pragma once
#include <cstddef>
#include <vector>

namespace duplex {

/// A block of memory needed from moment `first` to moment `last`, both included.
struct Lifetime {
  std::size_t bytes = 0;
  int first = 0;
  int last = 0;
};

struct MemoryPlan {
  std::vector<std::size_t> offsets;  ///< One for each lifetime, multiples of `alignment`.
  std::size_t bytes = 0;             ///< Of the arena.

  static constexpr std::size_t alignment = 4096;
};

/// Greedy by size (Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference",
/// 2020): the largest block first, each at the lowest offset that is free throughout its lifetime.
MemoryPlan plan_memory(const std::vector<Lifetime>& lifetimes);

}  // namespace duplex
