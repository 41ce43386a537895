// Lets tensors that do not live at the same time share memory: each gets an offset in one arena.
#pragma once
#include <cstddef>
#include <vector>

namespace duplex {

/// Describes a block of memory that is needed from moment `first` to moment `last`, both included.
struct Lifetime {
  std::size_t bytes = 0;
  int first = 0;
  int last = 0;
};

struct MemoryPlan {
  std::vector<std::size_t> offsets;  ///< One for each lifetime, multiples of `alignment`.
  std::size_t bytes = 0;             ///< Size of the arena.

  static constexpr std::size_t alignment = 4096;
};

/// Places blocks greedily by size (Pisarchyk and Lee, "Efficient Memory Management for Deep Neural
/// Net Inference", 2020): the largest first, each at the lowest offset that is free throughout its
/// lifetime. Blocks have at most 2^62 bytes. Throws Error where the arena would have more.
MemoryPlan plan_memory(const std::vector<Lifetime>& lifetimes);

}  // namespace duplex
