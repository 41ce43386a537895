#include "net/buffer_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>
#include <utility>

namespace duplex::net {
namespace {

/// From here on a buffer's memory is mapped: it goes back to the system when the pool lets it go,
/// where the heap of a program with many threads would keep most of it.
constexpr std::size_t mapped_above = 64 * 1024;

}  // namespace

void BufferPool::Release::operator()(float* data) const {
  if (mapped_bytes > 0)
    ::munmap(data, mapped_bytes);
  else
    delete[] data;
}

BufferPool::Buffer::Buffer(std::size_t count) : capacity_(count) {
  const std::size_t bytes = count * sizeof(float);
  if (bytes < mapped_above) {
    data_ = {new float[count], Release(0)};
    return;
  }
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  data_ = {static_cast<float*>(memory), Release(bytes)};
}

BufferPool::Buffer BufferPool::take(std::size_t count) {
  count = std::max<std::size_t>(count, 1);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto fit = free_.lower_bound(count);
    if (fit != free_.end() && fit->first <= 2 * count) {
      Buffer buffer = std::move(fit->second);
      free_floats_ -= fit->first;
      free_.erase(fit);
      return buffer;
    }
    // As much goes as comes, if there is as much.
    for (std::size_t gone = 0; gone < count && free_floats_ >= count - gone;) {
      const auto first = free_.begin();
      gone += first->first;
      free_floats_ -= first->first;
      floats_ -= first->first;
      free_.erase(first);
    }
    floats_ += count;
  }
  return Buffer(count);
}

void BufferPool::give_back(Buffer buffer) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::size_t capacity = buffer.capacity_;
  free_floats_ += capacity;
  free_.emplace(capacity, std::move(buffer));
}

std::size_t BufferPool::bytes() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return floats_ * sizeof(float);
}

}  // namespace duplex::net
