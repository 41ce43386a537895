// Batch normalisation (2.9)-(2.12) in plain loops. Per channel, over the `count` values that the
// batch has of it:
//   mean = 1/count * sum x                                   (2.9)
//   var = 1/count * sum (x - mean)^2                         (2.10)
//   xhat = (x - mean) / sqrt(var + epsilon)                  (2.11)
//   y = gamma * xhat + beta                                  (2.12)
#include "core/reference/batch_norm.h"

#include <cmath>
#include <vector>

#include "core/reference/rows.h"

namespace duplex::reference {
namespace {

class ReferenceBatchNorm : public BatchNorm {
 public:
  ReferenceBatchNorm(const BatchNormSpec& spec, const TensorDesc& x_desc) : spec_(spec) {
    x = y = x_desc;
    map_ = x.shape.h() * x.shape.w();
    count_ = x.shape.n() * map_;
    const auto channels = static_cast<std::size_t>(x.shape.c());
    mean_.resize(channels);
    inverse_stddev_.resize(channels);
    if (spec.relu) positive_.resize(static_cast<std::size_t>(x.shape.elements()));
  }

  void forward_training(Tensor& y_out, Tensor& running_mean, Tensor& running_var,
                        const Tensor& x_in, const Tensor& gamma, const Tensor& beta,
                        const Addend&) override {
    const auto count = static_cast<double>(count_);
    const double momentum = double{spec_.momentum};
    for (std::int64_t c = 0; c < x.shape.c(); ++c) {
      double sum = 0.0;
      for_each_value(c, [&](std::int64_t i) { sum += double{x_in.data[i]}; });
      const double mean = sum / count;
      double squares = 0.0;
      for_each_value(c, [&](std::int64_t i) {
        const double distance = double{x_in.data[i]} - mean;
        squares += distance * distance;
      });
      const double var = squares / count;
      const double inverse_stddev = 1.0 / std::sqrt(var + double{spec_.epsilon});

      normalise(y_out, x_in, c, mean, inverse_stddev, gamma.data[c], beta.data[c]);
      if (spec_.relu) {
        for_each_value(c, [&](std::int64_t i) {
          positive_[static_cast<std::size_t>(i)] = y_out.data[i] > 0.0F;
        });
      }
      const double unbiased = count_ > 1 ? squares / (count - 1.0) : 0.0;
      running_mean.data[c] =
          static_cast<float>((1.0 - momentum) * running_mean.data[c] + momentum * mean);
      running_var.data[c] =
          static_cast<float>((1.0 - momentum) * running_var.data[c] + momentum * unbiased);
      mean_[static_cast<std::size_t>(c)] = mean;
      inverse_stddev_[static_cast<std::size_t>(c)] = inverse_stddev;
    }
  }

  void forward_inference(Tensor& y_out, const Tensor& x_in, const Tensor& gamma, const Tensor& beta,
                         const Tensor& running_mean, const Tensor& running_var,
                         const Addend&) override {
    for (std::int64_t c = 0; c < x.shape.c(); ++c) {
      const double var = double{running_var.data[c]};
      normalise(y_out, x_in, c, double{running_mean.data[c]},
                1.0 / std::sqrt(var + double{spec_.epsilon}), gamma.data[c], beta.data[c]);
    }
  }

  // dbeta = sum dy; dgamma = sum dy * xhat;
  // dx = gamma / sqrt(var + epsilon) * (dy - dbeta / count - xhat * dgamma / count)
  void backward(Tensor& dx, Tensor& dgamma, Tensor& dbeta, const Tensor& dy, const Tensor& x_in,
                const Tensor& gamma) override {
    const auto count = static_cast<double>(count_);
    for (std::int64_t c = 0; c < x.shape.c(); ++c) {
      const double mean = mean_[static_cast<std::size_t>(c)];
      const double inverse_stddev = inverse_stddev_[static_cast<std::size_t>(c)];
      const auto xhat = [&](std::int64_t i) {
        return (double{x_in.data[i]} - mean) * inverse_stddev;
      };
      const auto masked = [&](std::int64_t i) {
        return spec_.relu && !positive_[static_cast<std::size_t>(i)] ? 0.0 : double{dy.data[i]};
      };
      double sum = 0.0, sum_xhat = 0.0;
      for_each_value(c, [&](std::int64_t i) {
        sum += masked(i);
        sum_xhat += masked(i) * xhat(i);
      });
      dbeta.data[c] = static_cast<float>(sum);
      dgamma.data[c] = static_cast<float>(sum_xhat);
      const double factor = double{gamma.data[c]} * inverse_stddev;
      for_each_value(c, [&](std::int64_t i) {
        dx.data[i] =
            static_cast<float>(factor * (masked(i) - sum / count - xhat(i) * sum_xhat / count));
      });
    }
  }

 private:
  /// Calls visit(offset) for every value of channel c in the batch.
  template <typename Visit>
  void for_each_value(std::int64_t c, Visit visit) const {
    for (std::int64_t n = 0; n < x.shape.n(); ++n) {
      const std::int64_t first = (n * x.shape.c() + c) * map_;
      for (std::int64_t i = first; i < first + map_; ++i) visit(i);
    }
  }

  void normalise(Tensor& y_out, const Tensor& x_in, std::int64_t c, double mean,
                 double inverse_stddev, float gamma, float beta) const {
    for_each_value(c, [&](std::int64_t i) {
      const double xhat = (double{x_in.data[i]} - mean) * inverse_stddev;
      const auto value = static_cast<float>(double{gamma} * xhat + double{beta});
      y_out.data[i] = spec_.relu ? std::max(value, 0.0F) : value;
    });
  }

  BatchNormSpec spec_;
  std::int64_t map_ = 0, count_ = 0;
  std::vector<double> mean_, inverse_stddev_;  ///< Statistics of the last forward_training.
  std::vector<unsigned char> positive_;        ///< Where that forward's y was above zero.
};

}  // namespace

std::unique_ptr<BatchNorm> make_batch_norm(const BatchNormSpec& spec, const TensorDesc& x) {
  return std::make_unique<ReferenceBatchNorm>(spec, x);
}

}  // namespace duplex::reference
