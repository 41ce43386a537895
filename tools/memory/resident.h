// The memory of this process that is in RAM, and how much of it a buffer will be.
#pragma once
#include <cstddef>

namespace duplex::tools {

/// Returns the bytes of this process that are in RAM now; 0 if the system does not say.
std::size_t resident_now();

/// Returns the bytes that a buffer of so many takes in RAM once all of it has been written: whole
/// pages.
std::size_t in_pages(std::size_t bytes);

}  // namespace duplex::tools
