// ReLU and sigmoid in plain loops.
#include "core/reference/activation.h"

#include <algorithm>
#include <cmath>

namespace duplex::reference {
namespace {

class Relu : public Activation {
 public:
  // ReLU (2.3).
  void forward(Tensor& y_out, const Tensor& x_in) override {
    for (std::int64_t i = 0; i < x_in.stored(); ++i) y_out.data[i] = std::max(x_in.data[i], 0.0F);
  }

  // The gradient of ReLU (3.6): y is above zero exactly where x is.
  void backward(Tensor& dx, const Tensor& dy, const Tensor& y_in) override {
    for (std::int64_t i = 0; i < dx.stored(); ++i) {
      dx.data[i] = y_in.data[i] > 0.0F ? dy.data[i] : 0.0F;
    }
  }
};

class Sigmoid : public Activation {
 public:
  // Sigmoid (2.4).
  void forward(Tensor& y_out, const Tensor& x_in) override {
    for (std::int64_t i = 0; i < x_in.stored(); ++i) {
      y_out.data[i] = 1.0F / (1.0F + std::exp(-x_in.data[i]));
    }
  }

  // The gradient of sigmoid (3.7).
  void backward(Tensor& dx, const Tensor& dy, const Tensor& y_in) override {
    for (std::int64_t i = 0; i < dx.stored(); ++i) {
      dx.data[i] = dy.data[i] * y_in.data[i] * (1.0F - y_in.data[i]);
    }
  }
};

}  // namespace

std::unique_ptr<Activation> make_activation(ActivationKind kind, const TensorDesc& x) {
  std::unique_ptr<Activation> activation;
  if (kind == ActivationKind::relu) {
    activation = std::make_unique<Relu>();
  } else {
    activation = std::make_unique<Sigmoid>();
  }
  activation->x = activation->y = x;
  return activation;
}

}  // namespace duplex::reference
