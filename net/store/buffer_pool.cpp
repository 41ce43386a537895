#include "net/store/buffer_pool.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/mapped_memory.h"

namespace duplex::net {
namespace {

/// One spare part in so many: the pool may have that much beyond the most that was asked for at a
/// time, and a buffer that much beyond what is wanted of it.
constexpr std::size_t spare_part = 4;

/// Bytes of the pages that so many floats take, one page at least.
std::size_t pages_of(std::size_t floats) {
  static const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return (std::max<std::size_t>(floats, 1) * sizeof(float) + page - 1) / page * page;
}

}  // namespace

BufferPool::BufferPool(std::size_t longest) : longest_(pages_of(longest)) {}

BufferPool::Buffer BufferPool::take(std::size_t count) {
  const std::size_t wanted = pages_of(count);
  const std::lock_guard<std::mutex> lock(mutex_);
  Buffer buffer = take_near(wanted);
  if (!buffer) buffer.memory_ = map_memory(longest_);
  const std::size_t lacking = wanted - std::min(wanted, buffer.used_);
  buffer.used_ += lacking;
  buffer.asked_ = wanted;
  used_ += lacking;
  asked_ += wanted;
  most_asked_ = std::max(most_asked_, asked_);
  while (!free_.empty() && used_ > most_asked_ + most_asked_ / spare_part) {
    const auto largest = std::prev(free_.end());
    used_ -= largest->first;
    free_.erase(largest);
  }
  return buffer;
}

/// Takes the free buffer with the least memory that suffices, unless it has much more than is
/// wanted. Otherwise takes the one with the most memory below that, unless it has less than half of
/// it. Empty if there is neither.
BufferPool::Buffer BufferPool::take_near(std::size_t wanted) {
  auto near = free_.lower_bound(wanted);
  const std::size_t most = wanted + wanted / spare_part;
  if ((near == free_.end() || near->first > most) && near != free_.begin()) --near;
  if (near == free_.end() || near->first > most || wanted > 2 * near->first) return {};
  Buffer buffer = std::move(near->second);
  free_.erase(near);
  return buffer;
}

void BufferPool::give_back(Buffer buffer) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::size_t used = buffer.used_;
  asked_ -= buffer.asked_;
  free_.emplace(used, std::move(buffer));
}

std::size_t BufferPool::bytes() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return used_;
}

}  // namespace duplex::net
