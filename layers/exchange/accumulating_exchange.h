// Accumulates the gradients of several batches before one update by their mean. One worker so does
// batch after batch what several workers do at once in sync join (3.12).
#pragma once
#include "core/exchange.h"
#include "layers/exchange/mean_gradients.h"

namespace duplex {

/// Passes every `count`-th step on to `inner`, with the mean of the gradients since the one before
/// (MeanGradients). The steps of `inner` count updates.
class AccumulatingExchange final : public Exchange {
 public:
  AccumulatingExchange(Network& network, Exchange& inner, std::uint64_t count)
      : inner_(inner), means_(network, count) {}

  bool works_between_steps() const override { return inner_.works_between_steps(); }
  void begin(std::uint64_t step) override {
    part_ = step % means_.count();
    if (part_ == 0) inner_.begin(step / means_.count());
  }
  void await(std::size_t parameter) override {
    if (part_ == 0) inner_.await(parameter);
  }
  void push(std::size_t parameter) override {
    if (means_.add(parameter, part_)) inner_.push(parameter);
  }
  void end() override {
    if (part_ + 1 == means_.count()) inner_.end();
  }
  void await_all() override { inner_.await_all(); }

 private:
  Exchange& inner_;
  MeanGradients means_;
  std::uint64_t part_ = 0;
};

}  // namespace duplex
