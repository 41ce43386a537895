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

/// It takes the free buffer with the least memory that suffices, unless that has much more than is
/// wanted. Otherwise it takes the one with the most memory below that, unless that has less than
/// half of it, and makes one if there is neither.
BufferPool::Buffer BufferPool::take(std::size_t count) {
  const std::size_t wanted = pages_of(count), most = wanted + wanted / spare_part;
  const std::lock_guard<std::mutex> lock(mutex_);
  auto near = free_.lower_bound(wanted);
  if ((near == free_.end() || near->first > most) && near != free_.begin()) --near;
  Buffer buffer;
  if (near != free_.end() && near->first <= most && wanted <= 2 * near->first) {
    buffer = std::move(near->second);
    free_.erase(near);
  } else {
    buffer = std::make_unique<Memory>();
    buffer->owner = map_memory(longest_);
    buffer->data = static_cast<float*>(buffer->owner.data());
  }
  const std::size_t lacking = wanted - std::min(wanted, buffer->used);
  buffer->used += lacking;
  buffer->asked = wanted;
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

void BufferPool::give_back(Buffer buffer) {
  const std::lock_guard<std::mutex> lock(mutex_);
  asked_ -= buffer->asked;
  const std::size_t used = buffer->used;
  free_.emplace(used, std::move(buffer));
}

std::size_t BufferPool::bytes() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return used_;
}

}  // namespace duplex::net
