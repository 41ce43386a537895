// The rate at which an owner works: a store takes time for a gradient, too, to move it and the
// weights through memory.
#pragma once
#include <cstddef>
#include <vector>

namespace duplex::net {

/// Bytes of gradients a second that an owner on this machine applies to weights, by plain SGD and
/// with one thread; adding one gradient to another takes as long. It is the median of a few updates
/// of all parameters. `counts`: elements by parameter.
double owner_rate(const std::vector<std::size_t>& counts);

}  // namespace duplex::net
