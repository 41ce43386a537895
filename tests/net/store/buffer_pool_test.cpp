// The pool of buffers: which buffers it keeps, and that it does not grow.
#include "net/store/buffer_pool.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

namespace duplex::net {
namespace {

using Buffer = BufferPool::Buffer;

const auto page_bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
const std::size_t page = page_bytes / sizeof(float);  ///< Floats of a page.

TEST(BufferPool, GivesTheLeastThatSuffices) {
  BufferPool pool(10 * page);
  Buffer large = pool.take(10 * page), small = pool.take(6 * page);
  EXPECT_EQ(pool.bytes(), 16 * page_bytes);
  large->data[10 * page - 1] = 7.0F;
  const float *of_large = large->data, *of_small = small->data;
  pool.give_back(std::move(large));
  pool.give_back(std::move(small));
  small = pool.take(5 * page);
  EXPECT_EQ(small->data, of_small);
  large = pool.take(8 * page);
  EXPECT_EQ(large->data, of_large);
  EXPECT_EQ(pool.bytes(), 16 * page_bytes);
}

TEST(BufferPool, CountsWholePages) {
  BufferPool pool(page + 1);
  const Buffer none = pool.take(0), bit = pool.take(1), whole = pool.take(page),
               more = pool.take(page + 1);
  EXPECT_TRUE(none && bit && whole && more);
  EXPECT_EQ(pool.bytes(), 5 * page_bytes);
}

TEST(BufferPool, WhatLacksLittleGrows) {
  BufferPool pool(10 * page);
  Buffer first = pool.take(2 * page), second = pool.take(4 * page);
  const float* of_second = second->data;
  pool.give_back(std::move(first));
  pool.give_back(std::move(second));
  Buffer grown = pool.take(8 * page);
  EXPECT_EQ(grown->data, of_second);
  grown->data[8 * page - 1] = 7.0F;
}

TEST(BufferPool, KeepsLittleMoreThanTheMostThatWasOut) {
  const std::size_t most = 200 * page;
  BufferPool pool(100 * page);
  for (const std::size_t count : {100 * page, page, page / 3, 2 * page, std::size_t{1}}) {
    std::vector<Buffer> out;
    while (out.size() * std::max(count, page) < most) out.push_back(pool.take(count));
    for (Buffer& buffer : out) pool.give_back(std::move(buffer));
    EXPECT_LE(pool.bytes(), most * 5 / 4 * sizeof(float)) << count;
  }
}

}  // namespace
}  // namespace duplex::net
