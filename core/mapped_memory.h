// Memory of its own pages.
#pragma once
#include <cstddef>

#include "core/tensor.h"

namespace duplex {

/// Host memory mapped for this buffer alone, zero at first, aligned to a page. When the buffer goes
/// the pages go back to the system, never to the heap: what the network still sends from them
/// (net/lending_pipe.h) stays as it was. Throws Error when there is none left.
Buffer map_memory(std::size_t bytes);

}  // namespace duplex
