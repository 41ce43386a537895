// Implements what bound convolution and linear layers share: weights, maybe a bias, maybe a ReLU.
#pragma once
#include "layers/layer.h"

namespace duplex {

/// `Operation` is Conv or Linear of core/operations.h.
template <class Operation>
class BoundWeighted : public BoundLayer {
 public:
  BoundWeighted(std::unique_ptr<Operation> operation, bool bias)
      : operation_(std::move(operation)), bias_(bias) {
    y = operation_->y;
    parameters.push_back(operation_->weights);
    if (bias_) parameters.push_back(operation_->bias);
  }

  void forward(Tensor& y, const std::vector<Tensor>& x, std::vector<Tensor>& p,
               const ForwardContext&) override {
    operation_->forward(y, x[0], p[0], bias_ ? p[1] : none_);
  }

  void backward(std::vector<Tensor>& dx, std::vector<Tensor>& dp, const Tensor& dy,
                const std::vector<Tensor>& x, const Tensor&,
                const std::vector<Tensor>& p) override {
    if (dp[0]) operation_->backward_weights(dp[0], bias_ ? dp[1] : none_, dy, x[0]);
    if (dx[0]) operation_->backward_data(dx[0], dy, p[0]);
  }

 private:
  std::unique_ptr<Operation> operation_;
  bool bias_;
  Tensor none_;
};

}  // namespace duplex
