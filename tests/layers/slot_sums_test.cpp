// Tests that gradients of slots are added in the order of the slots and passed on once, that all
// slots see the same weights, and that all end where one fails.
#include "layers/exchange/slot_sums.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <random>
#include <stdexcept>
#include <thread>

#include "tests/layers/small_networks.h"

namespace duplex {
namespace {

/// Notes what it is called with, and what the gradients are at that moment.
class Notes final : public Exchange {
 public:
  explicit Notes(const std::vector<Span>& spans) : spans_(spans) {}

  void begin(std::uint64_t step) override { begun.push_back(step); }
  void await(std::size_t parameter) override {
    spans_[parameter].weights[0] = static_cast<float>(begun.size());
    ++awaited;
  }
  void push(std::size_t parameter) override {
    if (refuses) throw std::runtime_error("refused");
    pushed.resize(spans_.size());
    const Span& span = spans_[parameter];
    pushed[parameter].assign(span.gradient, span.gradient + span.count);
    ++pushes;
  }
  void end() override { ++ended; }

  std::vector<std::uint64_t> begun;
  std::vector<std::vector<float>> pushed;
  std::size_t awaited = 0, pushes = 0, ended = 0;
  bool refuses = false;

 private:
  std::vector<Span> spans_;
};

/// It has gradients that one thread adds, and one that several do.
Model wide() {
  Model net("Wide", {1, 3, 8, 8});
  const auto x = net.conv("conv", net.input(), 8, same(3));
  net.softmax("softmax", net.linear("fc", net.linear("hidden", x, 700, true), 5, false), 1.0F);
  return net;
}

class SlotSumsTest : public ::testing::Test {
 protected:
  static constexpr std::size_t slots = 3;

  SlotSumsTest() {
    for (std::size_t slot = 1; slot < slots; ++slot)
      others_.push_back(std::make_unique<HostParameters>(model_, first_));
    all_.push_back(&first_);
    for (const auto& other : others_) all_.push_back(other.get());
  }

  /// A slot's gradient in a step.
  static float gradient(std::size_t slot, std::size_t parameter, std::size_t i,
                        std::uint64_t step) {
    return std::sin(static_cast<float>(1 + i * 7 + slot * 131 + parameter * 17 + step * 29)) *
           std::pow(10.0F, static_cast<float>(slot));
  }

  /// One step of a slot, whose threads are not in step with one another.
  void run_step(Exchange& exchange, std::size_t slot, std::uint64_t step) {
    std::minstd_rand random(static_cast<unsigned>(slot * 97 + step + 1));
    const auto pause = [&] {
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 200));
    };
    const std::vector<Span>& spans = all_[slot]->spans();
    exchange.begin(step);
    for (std::size_t p = 0; p < spans.size(); ++p) {
      exchange.await(p);
      EXPECT_EQ(spans[p].weights[0], static_cast<float>(step + 1));
      pause();
    }
    for (std::size_t p = spans.size(); p-- > 0;) {
      for (std::size_t i = 0; i < spans[p].count; ++i)
        spans[p].gradient[i] = gradient(slot, p, i, step);
      exchange.push(p);
      pause();
    }
    exchange.end();
  }

  const Model model_ = wide();
  HostParameters first_{model_, true};
  std::vector<std::unique_ptr<HostParameters>> others_;
  std::vector<const HostParameters*> all_;
};

TEST_F(SlotSumsTest, SharesWeightsAndAddsInOrder) {
  for (const auto& other : others_)
    for (std::size_t p = 0; p < first_.spans().size(); ++p) {
      EXPECT_EQ(other->spans()[p].weights, first_.spans()[p].weights);
      EXPECT_NE(other->spans()[p].gradient, first_.spans()[p].gradient);
    }
  Notes notes(first_.spans());
  SlotSums sums(notes, all_, 2);
  std::vector<std::thread> threads;
  for (std::size_t slot = 1; slot < slots; ++slot)
    threads.emplace_back([&, slot] {
      std::uint64_t step = 0;
      for (; sums.await_step(step); ++step) run_step(sums.slot(slot), slot, step);
      EXPECT_EQ(step, 3U);
    });
  for (std::uint64_t step = 0; step < 3; ++step) {
    run_step(sums.slot(0), 0, step);
    EXPECT_EQ(notes.pushed.size(), first_.spans().size());
    std::size_t wrong = 0;
    for (std::size_t p = 0; p < notes.pushed.size(); ++p)
      for (std::size_t i = 0; i < notes.pushed[p].size(); ++i)
        wrong += notes.pushed[p][i] !=
                 (gradient(0, p, i, step) + gradient(1, p, i, step)) + gradient(2, p, i, step);
    EXPECT_EQ(wrong, 0U) << "step " << step;
  }
  sums.end();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(notes.begun, (std::vector<std::uint64_t>{0, 1, 2}));
  EXPECT_EQ(notes.awaited, 3 * first_.spans().size());
  EXPECT_EQ(notes.pushes, 3 * first_.spans().size());
  EXPECT_EQ(notes.ended, 3U);
  sums.check();
}

/// A slot that fails has all others throw its error, wherever they wait.
TEST_F(SlotSumsTest, EndWhereOneFails) {
  Notes notes(first_.spans());
  SlotSums sums(notes, all_, 2);
  std::thread fails([&] { sums.fail(std::make_exception_ptr(std::runtime_error("slot 2"))); });
  std::atomic<int> ended{0};
  std::thread waits([&] {
    EXPECT_THROW(sums.await_step(1), std::runtime_error);  // It never begins.
    ++ended;
  });
  EXPECT_THROW(run_step(sums.slot(0), 0, 0), std::runtime_error);
  fails.join();
  waits.join();
  EXPECT_EQ(ended, 1);
  EXPECT_THROW(sums.check(), std::runtime_error);
}

/// An exchange that takes no gradient ends all slots, too.
TEST_F(SlotSumsTest, EndWhereTheExchangeFails) {
  Notes notes(first_.spans());
  notes.refuses = true;
  SlotSums sums(notes, all_, 2);
  std::vector<std::thread> threads;
  for (std::size_t slot = 1; slot < slots; ++slot)
    threads.emplace_back([&, slot] {
      try {
        if (sums.await_step(0)) run_step(sums.slot(slot), slot, 0);
        while (sums.await_step(1)) std::this_thread::yield();
        ADD_FAILURE() << "slot " << slot << " has heard of nothing";
      } catch (const std::runtime_error&) {
        sums.fail(std::current_exception());
      }
    });
  try {
    run_step(sums.slot(0), 0, 0);
    ADD_FAILURE() << "the first slot has heard of nothing";
  } catch (const std::runtime_error&) {
    sums.fail(std::current_exception());
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace duplex
