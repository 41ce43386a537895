// Linear layer (2.2) in plain loops: y[n,o] = b[o] + sum over i of w[o,i] * x[n,i]. A row of the
// weights is read once and used for the whole batch.
#include "core/reference/linear.h"

#include "core/reference/rows.h"

namespace duplex::reference {
namespace {

class ReferenceLinear : public Linear {
 public:
  ReferenceLinear(const LinearSpec& spec, const TensorDesc& x_desc) : spec_(spec) {
    x = x_desc;
    weights = plain_desc(weights_shape(spec, x.shape));
    if (spec.bias) bias = plain_desc({spec.outputs});
    y = plain_desc(output_shape(spec, x.shape));
    samples_ = x.shape.n();
    inputs_ = weights.shape[1];
  }

  void forward(Tensor& y_out, const Tensor& x_in, const Tensor& w, const Tensor& b) override {
    for (std::int64_t o = 0; o < spec_.outputs; ++o) {
      for (std::int64_t n = 0; n < samples_; ++n) {
        float value = dot(w.data + o * inputs_, x_in.data + n * inputs_, inputs_);
        if (spec_.bias) value += b.data[o];
        if (spec_.relu) value = std::max(value, 0.0F);
        y_out.data[n * spec_.outputs + o] = value;
      }
    }
  }

  // dx[n,i] = sum over o of w[o,i] * dy[n,o]
  void backward_data(Tensor& dx, const Tensor& dy, const Tensor& w) override {
    std::fill(dx.data, dx.data + dx.stored(), 0.0F);
    for (std::int64_t o = 0; o < spec_.outputs; ++o) {
      for (std::int64_t n = 0; n < samples_; ++n) {
        add_scaled(dx.data + n * inputs_, w.data + o * inputs_, dy.data[n * spec_.outputs + o],
                   inputs_);
      }
    }
  }

  // dw[o,i] = sum over n of dy[n,o] * x[n,i]; db[o] = sum over n of dy[n,o]
  void backward_weights(Tensor& dw, Tensor& db, const Tensor& dy, const Tensor& x_in) override {
    std::fill(dw.data, dw.data + dw.stored(), 0.0F);
    for (std::int64_t o = 0; o < spec_.outputs; ++o) {
      double sum = 0.0;
      for (std::int64_t n = 0; n < samples_; ++n) {
        const float gradient = dy.data[n * spec_.outputs + o];
        add_scaled(dw.data + o * inputs_, x_in.data + n * inputs_, gradient, inputs_);
        sum += double{gradient};
      }
      if (spec_.bias) db.data[o] = static_cast<float>(sum);
    }
  }

 private:
  LinearSpec spec_;
  std::int64_t samples_ = 0, inputs_ = 0;
};

}  // namespace

std::unique_ptr<Linear> make_linear(const LinearSpec& spec, const TensorDesc& x) {
  return std::make_unique<ReferenceLinear>(spec, x);
}

}  // namespace duplex::reference
