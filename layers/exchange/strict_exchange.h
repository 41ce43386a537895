// Implements the thesis's order of a step: receive all weights, compute, send all gradients.
#pragma once
#include "core/exchange.h"

namespace duplex {

/// Awaits all parameters of `inner`, `parameters` in number, when a step begins, and pushes all
/// when it ends.
class StrictExchange final : public Exchange {
 public:
  StrictExchange(Exchange& inner, std::size_t parameters)
      : inner_(inner), parameters_(parameters) {}

  void begin(std::uint64_t step) override {
    inner_.begin(step);
    for (std::size_t p = 0; p < parameters_; ++p) inner_.await(p);
  }
  void await(std::size_t) override {}
  void push(std::size_t parameter) override { inner_.computed(parameter); }
  void end() override {
    for (std::size_t p = 0; p < parameters_; ++p) inner_.push(p);
    inner_.end();
  }
  void await_all() override { inner_.await_all(); }

 private:
  Exchange& inner_;
  std::size_t parameters_;
};

}  // namespace duplex
