#include "core/cudnn/shared_memory.h"

#include <algorithm>

#include "core/cudnn/context.h"

namespace duplex::cudnn {

Reservation SharedMemory::reserve(const Context& context, std::size_t bytes) {
  // Memory that could not grow before may have less than was reserved.
  context.grow(buffer_, std::max(bytes, reserved()));
  auto reservation = std::make_shared<const std::size_t>(bytes);
  reserved_.push_back(reservation);
  return reservation;
}

void SharedMemory::trim(const Context& context) {
  const std::size_t most = reserved();
  if (most < buffer_.bytes()) context.replace(buffer_, most);
}

/// Returns the largest reservation that somebody has, and forgets those that are gone.
std::size_t SharedMemory::reserved() {
  std::size_t most = 0;
  const auto gone = [&](const std::weak_ptr<const std::size_t>& weak) {
    const Reservation reservation = weak.lock();
    if (reservation) most = std::max(most, *reservation);
    return !reservation;
  };
  reserved_.erase(std::remove_if(reserved_.begin(), reserved_.end(), gone), reserved_.end());
  return most;
}

}  // namespace duplex::cudnn
