// The largest batch that memory is enough for.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

namespace duplex::tools {

/// Returns the largest batch for which `needs` is at most `limit`: it is, and it is not for one
/// more, unless it is most_images. None: it is not even for a batch of 1. `needs` grows with the
/// batch, about in proportion; the search begins at `start`.
std::optional<std::int64_t> largest_batch(
    std::size_t limit, std::int64_t start,
    const std::function<std::size_t(std::int64_t batch)>& needs);

}  // namespace duplex::tools
