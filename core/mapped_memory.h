// Host memory on pages of its own.
#pragma once
#include <cstddef>

#include "core/tensor.h"

namespace duplex {

/// Maps host memory for this buffer alone, zero at first, aligned to a page. Big buffers are
/// aligned to a huge page, and the kernel is asked for such pages. When the buffer is destroyed,
/// the pages go back to the system, never to the heap, so that bytes that the network still sends
/// from them (net/wire/zero_copy_pipe.h) do not change. Throws Error when there is none left.
Buffer map_memory(std::size_t bytes);

}  // namespace duplex
