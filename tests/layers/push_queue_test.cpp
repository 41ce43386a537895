// Tests that a push queue makes its calls in order, each after its transfer, and reports a failure.
#include "layers/exchange/push_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <vector>

namespace duplex {
namespace {

/// Stands for a transfer that is done when the test says so.
class Held final : public Transfer {
 public:
  explicit Held(std::atomic<bool>& done, std::atomic<bool>* taken = nullptr)
      : done_(done), taken_(taken) {}
  void wait() override {
    if (taken_ != nullptr) *taken_ = true;
    while (!done_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

 private:
  std::atomic<bool>& done_;
  std::atomic<bool>* taken_;  ///< Told that the queue's thread waits; may be null.
};

TEST(PushQueue, CallsInOrderEachAfterItsTransfer) {
  std::atomic<bool> first{false}, second{true};
  std::atomic<int> calls{0};
  std::vector<int> order;
  PushQueue queue;
  queue.add(std::make_unique<Held>(first), [&] { order.push_back(1), ++calls; });
  queue.add(std::make_unique<Held>(second), [&] { order.push_back(2), ++calls; });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(calls, 0);  // The second is done, but has to wait for its turn.
  first = true;
  queue.wait();
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST(PushQueue, TellsTheFirstFailureAndCallsNothingBehindIt) {
  std::atomic<bool> done{true};
  bool called = false;
  PushQueue queue;
  queue.add(std::make_unique<Held>(done), [] { throw std::runtime_error("first"); });
  queue.add(std::make_unique<Held>(done), [&] { called = true; });
  for (int i = 0; i < 2; ++i) {
    try {
      queue.wait();
      FAIL() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "first");
    }
  }
  EXPECT_FALSE(called);
}

TEST(PushQueue, EndsWithoutCallingWhatIsLeft) {
  std::atomic<bool> done{false}, taken{false};
  std::atomic<int> calls{0};
  std::thread later;
  {
    PushQueue queue;
    queue.add(std::make_unique<Held>(done, &taken), [&] { ++calls; });
    while (!taken) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    queue.add(std::make_unique<Held>(done), [&] { ++calls; });
    later = std::thread([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      done = true;
    });
  }
  later.join();
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace duplex
