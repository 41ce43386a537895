// Limits what a program may allocate.
#pragma once
#include <cstddef>
#include <cstdint>

namespace duplex::fuzz {

/// While it lives, an allocation that makes what all threads hold grow by more than `bytes` ends
/// the program, after a line on standard error. One within another takes its place. In a build with
/// AddressSanitizer malloc() counts, too, in others operator new alone.
class MemoryLimit {
 public:
  explicit MemoryLimit(std::size_t bytes);
  ~MemoryLimit();
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;

 private:
  std::int64_t before_;
};

}  // namespace duplex::fuzz
