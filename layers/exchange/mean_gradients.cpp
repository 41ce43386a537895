#include "layers/exchange/mean_gradients.h"

namespace duplex {

MeanGradients::MeanGradients(Network& network, std::uint64_t count)
    : network_(network), count_(count) {
  if (count_ > 1) sums_.resize(network.parameters().size());
}

bool MeanGradients::add(std::size_t parameter, std::uint64_t number) {
  if (count_ == 1) return true;
  Tensor& gradient = network_.parameters()[parameter].gradient;
  std::vector<float>& sum = sums_[parameter];
  if (number == 0) {
    sum.resize(static_cast<std::size_t>(gradient.desc.shape.elements()));
    network_.named({}, [&] { network_.device().download(sum.data(), gradient); });
    return false;
  }
  next_.resize(sum.size());
  network_.named({}, [&] { network_.device().download(next_.data(), gradient); });
  const bool last = number + 1 == count_;
  const float part = last ? 1.0F / static_cast<float>(count_) : 1.0F;
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = (sum[i] + next_[i]) * part;
  if (last) network_.named({}, [&] { network_.device().upload(gradient, sum.data()); });
  return last;
}

}  // namespace duplex
