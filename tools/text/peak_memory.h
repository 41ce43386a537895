// The peak memory of this process.
#pragma once
#include <cstdint>

namespace duplex::tools {

/// The most bytes in RAM since the program began; 0 if the system does not say. (getrusage would
/// count the memory of the process that started it.)
std::int64_t peak_memory_bytes();

}  // namespace duplex::tools
