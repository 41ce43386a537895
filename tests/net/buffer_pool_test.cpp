// The pool of buffers: what it keeps, and that it does not grow.
#include "net/buffer_pool.h"

#include <gtest/gtest.h>

#include <vector>

namespace duplex::net {
namespace {

using Buffer = BufferPool::Buffer;

TEST(BufferPool, GivesTheLeastThatSuffices) {
  BufferPool pool(100);
  Buffer large = pool.take(100), small = pool.take(60);
  EXPECT_EQ(pool.bytes(), 640U);
  large.get()[99] = 7.0F;
  const float *of_large = large.get(), *of_small = small.get();
  pool.give_back(std::move(large));
  pool.give_back(std::move(small));
  small = pool.take(50);
  EXPECT_EQ(small.get(), of_small);
  large = pool.take(50);
  EXPECT_EQ(large.get(), of_large);
  EXPECT_TRUE(pool.take(0));
  EXPECT_EQ(pool.bytes(), 640U);
}

TEST(BufferPool, WhatLacksLittleGrows) {
  BufferPool pool(100);
  Buffer first = pool.take(20), second = pool.take(40);
  const float* of_second = second.get();
  pool.give_back(std::move(first));
  pool.give_back(std::move(second));
  Buffer grown = pool.take(80);
  EXPECT_EQ(grown.get(), of_second);
  grown.get()[79] = 7.0F;
}

TEST(BufferPool, KeepsLittleMoreThanTheMostThatWasOut) {
  constexpr std::size_t most = 200000;
  BufferPool pool(100000);
  for (const std::size_t count : {100000U, 1000U, 300U, 2000U, 100U}) {
    std::vector<Buffer> out;
    for (std::size_t i = 0; i < most / count; ++i) out.push_back(pool.take(count));
    for (Buffer& buffer : out) pool.give_back(std::move(buffer));
    EXPECT_LE(pool.bytes(), most * 5 / 4 * sizeof(float)) << count;
  }
}

}  // namespace
}  // namespace duplex::net
