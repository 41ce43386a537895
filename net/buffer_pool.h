// Buffers that are needed again and again, for some time each: kept, so that their memory need not
// be had from the system anew.
#pragma once
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>

namespace duplex::net {

class BufferPool {
  struct Release {
    explicit Release(std::size_t mapped) : mapped_bytes(mapped) {}
    void operator()(float* data) const;
    std::size_t mapped_bytes;  ///< 0: of the heap.
  };

 public:
  /// Uninitialised floats; empty where there are none.
  class Buffer {
   public:
    Buffer() = default;
    float* get() const { return data_.get(); }
    explicit operator bool() const { return data_ != nullptr; }

   private:
    friend class BufferPool;
    explicit Buffer(std::size_t count);
    std::unique_ptr<float[], Release> data_{nullptr, Release(0)};
    std::size_t capacity_ = 0;
  };

  /// `count` floats at least, of a buffer that was given back if one fits well. What does not fit
  /// makes room: the pool has, with what is out, little more than the most that ever was out.
  Buffer take(std::size_t count);
  void give_back(Buffer buffer);
  std::size_t bytes() const;  ///< Of all buffers, those that are out included.

 private:
  mutable std::mutex mutex_;
  std::multimap<std::size_t, Buffer> free_;  ///< By capacity.
  std::size_t free_floats_ = 0, floats_ = 0;
};

}  // namespace duplex::net
