#include "layers/exchange/accumulating_exchange.h"

namespace duplex {

void AccumulatingExchange::push(std::size_t parameter) {
  if (count_ > 1) {
    Tensor& gradient = network_.parameters()[parameter].gradient;
    std::vector<float>& sum = sums_[parameter];
    if (part_ == 0) {
      network_.named({}, [&] { network_.device().download(sum.data(), gradient); });
      return;
    }
    next_.resize(sum.size());
    network_.named({}, [&] { network_.device().download(next_.data(), gradient); });
    const bool last = part_ + 1 == count_;
    const float part = last ? 1.0F / static_cast<float>(count_) : 1.0F;
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = (sum[i] + next_[i]) * part;
    if (!last) return;
    network_.named({}, [&] { network_.device().upload(gradient, sum.data()); });
  }
  inner_.push(parameter);
}

}  // namespace duplex
