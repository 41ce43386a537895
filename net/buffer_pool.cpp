#include "net/buffer_pool.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/mapped_memory.h"

namespace duplex::net {
namespace {

/// What the pool has beyond the most that was asked for at a time: this part of it.
constexpr std::size_t spare_part = 4;

}  // namespace

BufferPool::Buffer BufferPool::take(std::size_t count) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Buffer buffer = take_near(count);
  if (!buffer) buffer.memory_ = map_memory(std::max<std::size_t>(longest_, 1) * sizeof(float));
  const std::size_t lacking = count - std::min(count, buffer.used_);
  buffer.used_ += lacking;
  buffer.asked_ = count;
  used_ += lacking;
  asked_ += count;
  most_asked_ = std::max(most_asked_, asked_);
  while (!free_.empty() && used_ > most_asked_ + most_asked_ / spare_part) {
    const auto largest = std::prev(free_.end());
    used_ -= largest->first;
    free_.erase(largest);
  }
  return buffer;
}

/// Of those that were given back the one with the least memory that suffices, else the one with the
/// most, unless it is more than twice as much as is asked for, or less than half.
BufferPool::Buffer BufferPool::take_near(std::size_t count) {
  auto near = free_.lower_bound(count);
  if ((near == free_.end() || near->first > 2 * count) && near != free_.begin()) --near;
  if (near == free_.end() || near->first > 2 * count || count > 2 * near->first) return {};
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
  return used_ * sizeof(float);
}

}  // namespace duplex::net
