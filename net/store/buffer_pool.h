// Buffers that are needed again and again, for some time each: kept, so that their memory need not
// be had from the system anew.
#pragma once
#include <cstddef>
#include <map>
#include <mutex>

#include "core/tensor.h"

namespace duplex::net {

/// Every buffer has addresses for the longest that will be asked for, and memory, in whole pages,
/// for the longest that has been asked of it, so that it can serve for longer ones later.
class BufferPool {
 public:
  /// Uninitialised floats; empty where there are none.
  class Buffer {
   public:
    Buffer() = default;
    float* get() const { return static_cast<float*>(memory_.data()); }
    explicit operator bool() const { return get() != nullptr; }

   private:
    friend class BufferPool;
    duplex::Buffer memory_;
    std::size_t asked_ = 0;  ///< Bytes of whole pages, as all sizes below.
    std::size_t used_ = 0;   ///< The most that was ever asked: the rest has no memory yet.
  };

  /// `longest`: floats of the longest buffer.
  explicit BufferPool(std::size_t longest);

  /// `count` floats, not more than the longest. Buffers that were given back and do not fit make
  /// room: the pool has, with what is out, little more memory than the most that was asked for at a
  /// time.
  Buffer take(std::size_t count);
  void give_back(Buffer buffer);
  std::size_t bytes() const;  ///< Of pages in all buffers, those that are out included.

 private:
  Buffer take_near(std::size_t wanted);

  const std::size_t longest_;
  mutable std::mutex mutex_;
  std::multimap<std::size_t, Buffer> free_;            ///< By used_.
  std::size_t used_ = 0, asked_ = 0, most_asked_ = 0;  ///< Of all.
};

}  // namespace duplex::net
