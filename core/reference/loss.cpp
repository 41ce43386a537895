// Softmax (2.13) with cross-entropy, and squared error (3.1), in plain loops. For both,
// d loss / dx = (y - t) / N, where t is the target.
#include "core/reference/loss.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/error.h"

namespace duplex::reference {
namespace {

class ReferenceLoss : public Loss {
 public:
  ReferenceLoss(const LossSpec& spec, const TensorDesc& x_desc) : spec_(spec) {
    x = y = x_desc;
    if (x.shape.h() != 1 || x.shape.w() != 1 || x.shape.rank() < 2) {
      throw Error("loss: the input is " + x.shape.str() + ", not N x classes");
    }
    samples_ = x.shape.n();
    classes_ = x.shape.c();
  }

  void forward(Tensor& y_out, const Tensor& x_in, const std::int32_t* labels) override {
    if (labels != nullptr) {
      labels_.assign(labels, labels + samples_);
      check_labels();
    }
    double sum = 0.0;
    for (std::int64_t n = 0; n < samples_; ++n) {
      const float* from = x_in.data + n * classes_;
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
      for (std::int64_t c = 0; c < classes_; ++c) {
        const std::int64_t i = n * classes_ + c;
        const float target = labels_[static_cast<std::size_t>(n)] == c ? on : off;
        dx.data[i] = factor * (y_in.data[i] - target);
      }
    }
  }

 private:
  /// y = softmax(x) of one sample; returns -sum t log y, 0 for label -1. It subtracts the greatest
  /// x first, so that exp does not overflow, and takes the logarithm of the sum, so that the loss
  /// stays finite where y[label] is too small for a float.
  double cross_entropy(float* y_row, const float* x_row, std::int64_t label) const {
    const double greatest = double{*std::max_element(x_row, x_row + classes_)};
    double sum = 0.0;
    for (std::int64_t c = 0; c < classes_; ++c) sum += std::exp(double{x_row[c]} - greatest);
    for (std::int64_t c = 0; c < classes_; ++c) {
      y_row[c] = static_cast<float>(std::exp(double{x_row[c]} - greatest) / sum);
    }
    if (label < 0) return 0.0;
    double mean = 0.0;  // That of all log y, but for log(sum).
    if (spec_.smoothing > 0.0F)
      for (std::int64_t c = 0; c < classes_; ++c)
        mean += (double{x_row[c]} - greatest) / static_cast<double>(classes_);
    const double smoothing = double{spec_.smoothing};
    return std::log(sum) - (1.0 - smoothing) * (double{x_row[label]} - greatest) - smoothing * mean;
  }

  /// y = x of one sample; returns 1/2 * sum (y - t)^2.
  double squared_error(float* y_row, const float* x_row, std::int64_t label) const {
    const float on = spec_.on(classes_), off = spec_.off(classes_);
    double sum = 0.0;
    for (std::int64_t c = 0; c < classes_; ++c) {
      y_row[c] = x_row[c];
      const double error = double{x_row[c]} - double{c == label ? on : off};
      sum += 0.5 * error * error;
    }
    return sum;
  }

  void check_labels() const {
    for (std::size_t n = 0; n < labels_.size(); ++n) {
      if (labels_[n] < 0 || labels_[n] >= classes_) {
        throw Error("loss: sample " + std::to_string(n) + " has label " +
                    std::to_string(labels_[n]) + ", but there are " + std::to_string(classes_) +
                    " classes");
      }
    }
  }

  LossSpec spec_;
  std::int64_t samples_ = 0, classes_ = 0;
  std::vector<std::int32_t> labels_;  ///< Labels of the last forward that had any.
  double value_ = 0.0;                ///< The mean loss of that forward.
};

}  // namespace

std::unique_ptr<Loss> make_loss(const LossSpec& spec, const TensorDesc& x) {
  return std::make_unique<ReferenceLoss>(spec, x);
}

}  // namespace duplex::reference
