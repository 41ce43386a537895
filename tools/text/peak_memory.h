// The memory of this process, its peak and now.
#pragma once
#include <cstdint>

namespace duplex::tools {

/// The most bytes in RAM since the program began; 0 if the system does not say. (getrusage would
/// count the memory of the process that started it.)
std::int64_t peak_memory_bytes();

/// The bytes in RAM now, by the kernel's running count: it costs little, and may lag behind by some
/// pages of each core; 0 if the system does not say.
std::uint64_t memory_bytes_now();

}  // namespace duplex::tools
