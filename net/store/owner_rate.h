// How fast an owner is: what a store does with a gradient takes time too, that of moving it and the
// weights through memory.
#pragma once
#include <cstddef>
#include <vector>

namespace duplex::net {

/// Bytes of gradients a second that an owner on this machine applies to weights, by plain SGD and
/// with one thread; adding one to another takes as long. In the median of a few updates of all
/// parameters. `counts`: elements by parameter.
double owner_rate(const std::vector<std::size_t>& counts);

}  // namespace duplex::net
