// Accumulates the gradients of several batches before one update by their mean. One worker so does
// batch after batch what several workers do at once in sync join (3.12).
#pragma once
#include <vector>

#include "core/exchange.h"
#include "layers/network.h"

namespace duplex {

/// Passes every `count`-th step on to `inner`, with the mean of the gradients since the one before.
/// It sums in order, so that the mean has the bits of `count` ranks' mean. The steps of `inner`
/// count updates.
class AccumulatingExchange final : public Exchange {
 public:
  AccumulatingExchange(Network& network, Exchange& inner, std::uint64_t count)
      : network_(network), inner_(inner), count_(count) {
    if (count_ == 1) return;
    for (const Parameter& parameter : network.parameters()) {
      sums_.emplace_back(static_cast<std::size_t>(parameter.spec.shape.elements()));
    }
  }

  void begin(std::uint64_t step) override {
    part_ = step % count_;
    if (part_ == 0) inner_.begin(step / count_);
  }
  void await(std::size_t parameter) override {
    if (part_ == 0) inner_.await(parameter);
  }
  void push(std::size_t parameter) override;
  void end() override {
    if (part_ + 1 == count_) inner_.end();
  }
  void await_all() override { inner_.await_all(); }

 private:
  Network& network_;
  Exchange& inner_;
  std::uint64_t count_, part_ = 0;
  std::vector<std::vector<float>> sums_;  ///< Sums by parameter, in logical order.
  std::vector<float> next_;
};

}  // namespace duplex
