// Writes to an open file, whatever interrupts.
#pragma once
#include <cstddef>

namespace duplex {

/// Writes `size` bytes where the descriptor stands. Returns how many were written: fewer than
/// `size` where it failed, and then errno says why.
std::size_t write_all(int descriptor, const char* from, std::size_t size);

}  // namespace duplex
