// An exchange that keeps time of another: how much of a step went into awaiting weights (beginning
// the step included) and pushing gradients (ending it included).
#pragma once
#include "core/clock.h"
#include "core/exchange.h"

namespace duplex {

class TimedExchange final : public Exchange {
 public:
  explicit TimedExchange(Exchange& inner) : inner_(inner) {}

  void begin(std::uint64_t step) override {
    push_ns_ = 0;
    const std::int64_t begin = clock_ns();
    inner_.begin(step);
    await_ns_ = clock_ns() - begin;
  }
  void await(std::size_t parameter) override {
    const std::int64_t begin = clock_ns();
    inner_.await(parameter);
    await_ns_ += clock_ns() - begin;
  }
  void push(std::size_t parameter) override {
    const std::int64_t begin = clock_ns();
    inner_.push(parameter);
    push_ns_ += clock_ns() - begin;
  }
  void end() override {
    const std::int64_t begin = clock_ns();
    inner_.end();
    end_ns_ = clock_ns() - begin;
    push_ns_ += end_ns_;
  }

  void await_all() override { inner_.await_all(); }  // It counts to no step.

  /// Of the current step so far.
  std::int64_t await_ns() const { return await_ns_; }
  std::int64_t push_ns() const { return push_ns_; }
  std::int64_t end_ns() const { return end_ns_; }  ///< Of push_ns, ending the step.

 private:
  Exchange& inner_;
  std::int64_t await_ns_ = 0, push_ns_ = 0, end_ns_ = 0;
};

}  // namespace duplex
