// For both losses d loss / dx = (y - t) / N, where t is the target. The rows are short, so this
// runs on one thread; sums are in double.
#include "core/onednn/operations/loss.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/error.h"
#include "core/onednn/layout.h"

namespace duplex::onednn {
namespace {

class OneDnnLoss final : public Loss {
 public:
  OneDnnLoss(const LossSpec& spec, const TensorDesc& desc) : spec_(spec) {
    if (desc.shape.rank() < 2 || desc.shape.h() != 1 || desc.shape.w() != 1) {
      throw Error("loss: the input is " + desc.shape.str() + ", not N x classes");
    }
    x = desc;
    y = plain_desc(desc.shape);
    samples_ = x.shape.n();
    classes_ = x.shape.c();
    // The map has one element, so every layout has a sample's classes side by side.
    row_ = channel_blocks(x).padded;
  }

  void forward(Tensor& y_out, const Tensor& x_in, const std::int32_t* labels) override {
    if (labels != nullptr) take_labels(labels);
    double sum = 0.0;
    for (std::int64_t n = 0; n < samples_; ++n) {
      const float* from = x_in.data + n * row_;
      float* to = y_out.data + n * classes_;
      const std::int64_t label = labels == nullptr ? -1 : std::int64_t{labels[n]};
      sum += spec_.kind == LossKind::softmax_cross_entropy ? cross_entropy(to, from, label)
                                                           : squared_error(to, from, label);
    }
    if (labels != nullptr) value_ = sum / static_cast<double>(samples_);
  }

  double value() override { return value_; }

  void backward(Tensor& dx, const Tensor& y_in, float weight) override {
    if (labels_.empty()) throw Error("loss: backward before a forward with labels");
    const float factor = weight / static_cast<float>(samples_);
    const float on = spec_.on(classes_), off = spec_.off(classes_);
    for (std::int64_t n = 0; n < samples_; ++n) {
      const float* from = y_in.data + n * classes_;
      float* to = dx.data + n * row_;
      const std::int64_t label = labels_[static_cast<std::size_t>(n)];
      for (std::int64_t c = 0; c < classes_; ++c) {
        to[c] = factor * (from[c] - (c == label ? on : off));
      }
      std::fill(to + classes_, to + row_, 0.0F);
    }
  }

 private:
  void take_labels(const std::int32_t* labels) {
    for (std::int64_t n = 0; n < samples_; ++n) {
      if (labels[n] >= 0 && labels[n] < classes_) continue;
      throw Error("loss: sample " + std::to_string(n) + " has label " + std::to_string(labels[n]) +
                  ", but there are " + std::to_string(classes_) + " classes");
    }
    labels_.assign(labels, labels + samples_);
  }

  /// y = softmax(x) of one sample; returns -sum t log y, 0 for label -1. It takes the logarithm of
  /// the sum, so that the loss stays finite where y[label] vanishes.
  double cross_entropy(float* to, const float* from, std::int64_t label) const {
    const double greatest = double{*std::max_element(from, from + classes_)};
    double sum = 0.0;
    for (std::int64_t c = 0; c < classes_; ++c) sum += std::exp(double{from[c]} - greatest);
    for (std::int64_t c = 0; c < classes_; ++c) {
      to[c] = static_cast<float>(std::exp(double{from[c]} - greatest) / sum);
    }
    if (label < 0) return 0.0;
    double mean = 0.0;  // That of all log y, but for log(sum).
    if (spec_.smoothing > 0.0F)
      for (std::int64_t c = 0; c < classes_; ++c)
        mean += (double{from[c]} - greatest) / static_cast<double>(classes_);
    const double smoothing = double{spec_.smoothing};
    return std::log(sum) - (1.0 - smoothing) * (double{from[label]} - greatest) - smoothing * mean;
  }

  /// y = x of one sample; returns 1/2 * sum (y - t)^2.
  double squared_error(float* to, const float* from, std::int64_t label) const {
    const float on = spec_.on(classes_), off = spec_.off(classes_);
    double sum = 0.0;
    for (std::int64_t c = 0; c < classes_; ++c) {
      to[c] = from[c];
      const double error = double{from[c]} - double{c == label ? on : off};
      sum += 0.5 * error * error;
    }
    return sum;
  }

  LossSpec spec_;
  std::int64_t samples_ = 0, classes_ = 0;
  std::int64_t row_ = 0;              ///< Elements from one sample of x to the next.
  std::vector<std::int32_t> labels_;  ///< Labels of the last forward that had any.
  double value_ = 0.0;                ///< The mean loss of that forward.
};

}  // namespace

std::unique_ptr<Loss> make_loss(const ContextPtr&, const LossSpec& spec, const TensorDesc& x) {
  return std::make_unique<OneDnnLoss>(spec, x);
}

}  // namespace duplex::onednn
