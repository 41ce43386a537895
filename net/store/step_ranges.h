// Ranges of steps, and sets of steps that are kept as ranges.
#pragma once
#include <cstdint>
#include <map>

namespace duplex::net {

/// Steps from `first` on, before `end`.
struct StepRange {
  std::uint64_t first = 0, end = 0;

  std::uint64_t count() const { return end - first; }
};

/// Batches that a worker trains in place of another: those of some steps of `worker`.
struct Lease {
  int worker = 0;
  StepRange steps;
};

class StepRanges {
 public:
  /// None of the steps may be in the set.
  void add(const StepRange& range);
  /// Takes the first steps that follow one another; an empty range: the set is empty.
  StepRange take_first();
  /// Takes so many steps at most that follow one another, the last ones.
  StepRange take_last(std::uint64_t most);
  bool empty() const { return ends_.empty(); }
  std::uint64_t count() const { return count_; }

 private:
  std::map<std::uint64_t, std::uint64_t> ends_;  ///< By the first step of each range.
  std::uint64_t count_ = 0;
};

}  // namespace duplex::net
