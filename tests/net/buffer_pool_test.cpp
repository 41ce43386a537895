// The pool of buffers: what it keeps, and that it does not grow.
#include "net/buffer_pool.h"

#include <gtest/gtest.h>

#include <vector>

namespace duplex::net {
namespace {

using Buffer = BufferPool::Buffer;

TEST(BufferPool, GivesWhatFits) {
  BufferPool pool;
  Buffer first = pool.take(100);
  first.get()[99] = 7.0F;
  const float* memory = first.get();
  pool.give_back(std::move(first));
  Buffer smaller = pool.take(60);
  EXPECT_EQ(smaller.get(), memory);
  EXPECT_EQ(pool.bytes(), 400U);
  Buffer another = pool.take(60);
  EXPECT_NE(another.get(), memory);
  EXPECT_TRUE(pool.take(0));
}

TEST(BufferPool, MakesRoomOfWhatDoesNotFit) {
  BufferPool pool;
  for (const std::size_t count : {100000U, 1000U, 300U, 2000U, 100U}) {
    std::vector<Buffer> out;
    for (std::size_t i = 0; i < 200000 / count; ++i) out.push_back(pool.take(count));
    for (Buffer& buffer : out) pool.give_back(std::move(buffer));
    EXPECT_LE(pool.bytes(), (200000U + 2000U) * sizeof(float)) << count;
  }
}

}  // namespace
}  // namespace duplex::net
