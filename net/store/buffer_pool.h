// A pool of buffers that are needed again and again, for some time each. It keeps them, so that the
// system need not give their memory anew.
#pragma once
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>

#include "core/tensor.h"

namespace duplex::net {

/// Every buffer has addresses for the longest that will be asked for. It has memory, in whole
/// pages, for the longest that has been asked of it, so that it can serve for longer ones later.
class BufferPool {
 public:
  struct Memory {
    float* data = nullptr;  ///< Uninitialised.
    duplex::Buffer owner;
    std::size_t asked = 0;  ///< Bytes asked for; all sizes from here on are of whole pages.
    std::size_t used = 0;   ///< The most bytes ever asked for; the rest has no memory yet.
  };
  using Buffer = std::unique_ptr<Memory>;

  /// `longest`: floats of the longest buffer.
  explicit BufferPool(std::size_t longest);

  /// Returns `count` floats, not more than the longest. Frees returned buffers that do not fit, to
  /// make room: the pool has, with the buffers in use, little more memory than the most that was
  /// asked for at a time.
  Buffer take(std::size_t count);
  void give_back(Buffer buffer);
  std::size_t bytes() const;  ///< Bytes of pages in all buffers, with those in use.

 private:
  const std::size_t longest_;
  mutable std::mutex mutex_;  ///< Guards all below. Any thread takes it, as its only lock.
  std::multimap<std::size_t, Buffer> free_;            ///< Free buffers, by Memory::used.
  std::size_t used_ = 0, asked_ = 0, most_asked_ = 0;  ///< Bytes of all buffers.
};

}  // namespace duplex::net
