// Times another exchange: how much of a step goes into awaiting weights and pushing gradients.
#pragma once
#include <cstdint>

#include "core/clock.h"
#include "core/exchange.h"

namespace duplex {

/// Holds the times of one step, in nanoseconds.
struct ExchangeTimes {
  std::int64_t begun = 0;  ///< Time of the call to begin(), by clock_ns.
  std::int64_t await = 0;  ///< Time spent in begin() and await().
  std::int64_t push = 0;   ///< Time spent in push() and end().
  std::int64_t end = 0;    ///< Time spent in end(), a part of `push`.
};

class TimedExchange final : public Exchange {
 public:
  explicit TimedExchange(Exchange& inner) : inner_(inner) {}

  bool works_between_steps() const override { return inner_.works_between_steps(); }
  void begin(std::uint64_t step) override {
    times_ = {};
    times_.begun = clock_ns();
    inner_.begin(step);
    times_.await = clock_ns() - times_.begun;
  }
  void await(std::size_t parameter) override {
    const std::int64_t begin = clock_ns();
    inner_.await(parameter);
    times_.await += clock_ns() - begin;
  }
  void push(std::size_t parameter) override {
    const std::int64_t begin = clock_ns();
    inner_.push(parameter);
    times_.push += clock_ns() - begin;
  }
  void end() override {
    const std::int64_t begin = clock_ns();
    inner_.end();
    times_.end = clock_ns() - begin;
    times_.push += times_.end;
  }
  void await_all() override { inner_.await_all(); }  // This belongs to no step.

  /// Returns the times of the current step so far.
  const ExchangeTimes& times() const { return times_; }

 private:
  Exchange& inner_;
  ExchangeTimes times_;
};

}  // namespace duplex
