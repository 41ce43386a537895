// Tests that mapped memory is zero, aligned, and all there.
#include "core/mapped_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "core/error.h"

namespace duplex {
namespace {

TEST(MappedMemory, IsZeroAndAligned) {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{5000}, std::size_t{9} << 20}) {
    const Buffer memory = map_memory(bytes);
    EXPECT_EQ(memory.bytes(), bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.data()) % 4096, 0U);
    auto* data = static_cast<char*>(memory.data());
    EXPECT_EQ(std::count(data, data + bytes, 0), static_cast<std::ptrdiff_t>(bytes));
    std::fill(data, data + bytes, 'x');
  }
  EXPECT_EQ(map_memory(0).data(), nullptr);
}

TEST(MappedMemory, SaysWhenThereIsNone) {
  EXPECT_THROW(map_memory(std::numeric_limits<std::size_t>::max() / 4), Error);
}

}  // namespace
}  // namespace duplex
