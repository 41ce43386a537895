// The receive window: what a rank lets its peers have under way to it.
#include "net/connection/receive_window.h"

#include <gtest/gtest.h>

namespace duplex::net {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kib = 1024;

TEST(WindowOf, FitsThePortsOfASwitch) {
  EXPECT_EQ(window_of(1, true, false), std::nullopt);  // There is nobody to share with.
  EXPECT_EQ(window_of(1, false, false), std::nullopt);
  EXPECT_EQ(window_of(8, true, true), std::nullopt);  // One peer sends at a time.
  EXPECT_EQ(window_of(8, true, false), 256 * kib);
  EXPECT_EQ(window_of(16, true, false), 128 * kib);
  EXPECT_EQ(window_of(1024, true, false), 64 * kib);
  // Among ranks that train, peers wait for many semaphores, of which one is this rank's.
  for (const bool semaphore : {false, true}) {
    EXPECT_EQ(window_of(2, false, semaphore), 1024 * kib / 3);
    EXPECT_EQ(window_of(8, false, semaphore), 192 * kib);
    EXPECT_EQ(window_of(1023, false, semaphore), 64 * kib);
  }
}

struct Clocked {
  ReceiveWindow window;
  Deadline now{std::chrono::hours(1)};

  explicit Clocked(std::optional<std::size_t> most) : window(most) {}
  bool lose(std::uint64_t segments = 100) { return window.look(segments, now); }
  bool wait(milliseconds time) { return window.look(0, now += time); }
  std::optional<std::size_t> bytes() { return window.bytes(); }
};

TEST(ReceiveWindow, IsHalvedWhereSomethingIsLost) {
  Clocked at(512 * kib);
  EXPECT_EQ(at.bytes(), 512 * kib);
  EXPECT_TRUE(at.lose());
  EXPECT_EQ(at.bytes(), 256 * kib);
  // Other peers' losses from the same burst do not count again.
  for (milliseconds later(0); later < ReceiveWindow::settling; later += milliseconds(100)) {
    EXPECT_FALSE(at.lose());
    EXPECT_EQ(at.bytes(), 256 * kib);
    EXPECT_FALSE(at.wait(milliseconds(100)));
  }
  EXPECT_TRUE(at.lose());
  EXPECT_EQ(at.bytes(), 128 * kib);
  for (int i = 0; i < 5; ++i) {
    at.wait(ReceiveWindow::settling);
    EXPECT_EQ(at.lose(), i == 0);
  }
  EXPECT_EQ(at.bytes(), least_window);
}

TEST(ReceiveWindow, SegmentsThatWereOvertakenAreNotLost) {
  Clocked at(512 * kib);
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(at.lose(ReceiveWindow::overtaken));
    at.wait(milliseconds(1000));
  }
  EXPECT_EQ(at.bytes(), 512 * kib);
}

TEST(ReceiveWindow, GrowsAgainWhileNothingIsLost) {
  Clocked at(512 * kib);
  at.lose();
  EXPECT_FALSE(at.wait(ReceiveWindow::quiet - milliseconds(1)));
  EXPECT_EQ(at.bytes(), 256 * kib);
  EXPECT_TRUE(at.wait(milliseconds(1)));
  EXPECT_EQ(at.bytes(), 320 * kib);
  EXPECT_FALSE(at.wait(milliseconds(0)));  // It does not grow again at once.
  for (const std::size_t next : {400, 500, 512}) {
    EXPECT_TRUE(at.wait(ReceiveWindow::quiet));
    EXPECT_EQ(at.bytes(), next * kib);
  }
  EXPECT_FALSE(at.wait(10 * ReceiveWindow::quiet));
}

TEST(ReceiveWindow, IsTheLeastThatAnyRankHasFound) {
  Clocked at(512 * kib);
  at.window.hear(3, 128 * kib);
  at.window.hear(5, 256 * kib);
  EXPECT_EQ(at.bytes(), 128 * kib);
  EXPECT_EQ(at.window.own(), 512 * kib);
  // Bytes dropped here were sent under the least window of all ranks, so that one is halved.
  EXPECT_TRUE(at.lose());
  EXPECT_EQ(at.bytes(), 64 * kib);
  EXPECT_EQ(at.window.own(), 64 * kib);
  at.wait(ReceiveWindow::quiet);
  EXPECT_EQ(at.bytes(), 80 * kib);
  for (int i = 0; i < 12; ++i) at.wait(ReceiveWindow::quiet);
  EXPECT_EQ(at.bytes(), 128 * kib);
  at.window.hear(3, 300 * kib);
  EXPECT_EQ(at.bytes(), 256 * kib);
  at.window.hear(5, 1024 * kib);
  at.window.hear(3, 1024 * kib);
  EXPECT_EQ(at.bytes(), 512 * kib);
}

/// A rank whose kernel gives it less than the window of the others would get everything last.
TEST(ReceiveWindow, IsNoMoreThanTheKernelGives) {
  Clocked at(512 * kib);
  at.window.allow(1024 * kib);
  EXPECT_EQ(at.bytes(), 512 * kib);
  EXPECT_FALSE(at.window.narrowed());
  at.window.allow(208 * kib);
  EXPECT_TRUE(at.window.narrowed());
  EXPECT_EQ(at.bytes(), 208 * kib);
  EXPECT_EQ(at.window.own(), 208 * kib);
  for (int i = 0; i < 9; ++i) at.wait(ReceiveWindow::quiet);
  EXPECT_EQ(at.bytes(), 208 * kib);
  at.window.allow(1);
  EXPECT_EQ(at.bytes(), least_window);
}

TEST(ReceiveWindow, WithoutBoundStaysSo) {
  Clocked at(std::nullopt);
  EXPECT_FALSE(at.lose());
  at.window.hear(1, 128 * kib);
  EXPECT_EQ(at.bytes(), std::nullopt);
}

}  // namespace
}  // namespace duplex::net
