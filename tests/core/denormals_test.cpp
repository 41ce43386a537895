#include "core/processor/denormals.h"

#include <gtest/gtest.h>

#include <limits>
#include <thread>

namespace duplex {
namespace {

float half_of_the_least_normal() {
  volatile float least = std::numeric_limits<float>::min();
  return least * 0.5F;
}

float twice_a_denormal() {
  volatile float denormal = std::numeric_limits<float>::denorm_min() * 1024.0F;
  return denormal * 2.0F;
}

TEST(Denormals, CountAsZeroInTheThreadAndItsChildrenAlone) {
#if !defined(__SSE__) && !defined(__x86_64__) && !defined(__aarch64__)
  GTEST_SKIP() << "flush_denormals() works on x86 and 64-bit ARM only";
#endif
  std::thread([] {
    EXPECT_GT(half_of_the_least_normal(), 0.0F);
    flush_denormals();
    EXPECT_EQ(half_of_the_least_normal(), 0.0F);
    EXPECT_EQ(twice_a_denormal(), 0.0F);
    std::thread([] { EXPECT_EQ(half_of_the_least_normal(), 0.0F); }).join();
  }).join();
  EXPECT_GT(half_of_the_least_normal(), 0.0F);
  EXPECT_GT(twice_a_denormal(), 0.0F);
}

}  // namespace
}  // namespace duplex
