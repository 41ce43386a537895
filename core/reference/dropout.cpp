// Dropout in plain loops.
#include "core/reference/dropout.h"

#include <vector>

#include "core/error.h"

namespace duplex::reference {
namespace {

class ReferenceDropout : public Dropout {
 public:
  ReferenceDropout(float rate, const TensorDesc& x_desc) : rate_(rate) {
    if (!(rate >= 0.0F && rate < 1.0F)) {
      throw Error("dropout: the rate " + std::to_string(rate) + " is not in [0, 1)");
    }
    x = y = x_desc;
    factor_.resize(static_cast<std::size_t>(x.shape.elements()));
  }

  void forward(Tensor& y_out, const Tensor& x_in, const DropoutDraw& draw) override {
    const std::uint64_t sample = factor_.size() / static_cast<std::uint64_t>(x.shape.n());
    draw.fill(factor_.data(), factor_.size(), sample);
    const float kept = 1.0F / (1.0F - rate_);
    for (std::size_t i = 0; i < factor_.size(); ++i) {
      factor_[i] = factor_[i] < rate_ ? 0.0F : kept;
      y_out.data[i] = x_in.data[i] * factor_[i];
    }
  }

  void backward(Tensor& dx, const Tensor& dy) override {
    for (std::size_t i = 0; i < factor_.size(); ++i) dx.data[i] = dy.data[i] * factor_[i];
  }

 private:
  float rate_;
  std::vector<float> factor_;  ///< The factors of the last forward: 0 or 1 / (1 - rate).
};

}  // namespace

std::unique_ptr<Dropout> make_dropout(float rate, const TensorDesc& x) {
  return std::make_unique<ReferenceDropout>(rate, x);
}

}  // namespace duplex::reference
