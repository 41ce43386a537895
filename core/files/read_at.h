// Reads parts of an open file.
#pragma once
#include <cstddef>
#include <cstdint>

namespace duplex {

/// Fills `size` bytes from `offset` on. Throws Error with the reason alone, since the caller knows
/// the file's name: the system's, or that the file became shorter. Any thread may call it.
void read_at(int descriptor, std::uint64_t offset, void* to, std::size_t size);

}  // namespace duplex
