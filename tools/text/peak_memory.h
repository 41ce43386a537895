// How much memory this process has had.
#pragma once
#include <cstdint>

namespace duplex::tools {

/// Bytes in RAM at most, since the program began; 0 where the system does not say. (getrusage would
/// count what the process that started it had.)
std::int64_t peak_memory_bytes();

}  // namespace duplex::tools
