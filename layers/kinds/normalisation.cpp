#include "layers/kinds/normalisation.h"

#include <algorithm>

#include "core/error.h"

namespace duplex {
namespace {

class BoundLrn : public BoundLayer {
 public:
  explicit BoundLrn(std::unique_ptr<Lrn> lrn) : lrn_(std::move(lrn)) { y = lrn_->y; }

  void forward(Tensor& y, const std::vector<Tensor>& x, std::vector<Tensor>&,
               const ForwardContext&) override {
    lrn_->forward(y, x[0]);
  }
  void backward(std::vector<Tensor>& dx, std::vector<Tensor>&, const Tensor& dy,
                const std::vector<Tensor>& x, const Tensor&, const std::vector<Tensor>&) override {
    if (dx[0]) lrn_->backward(dx[0], dy, x[0]);
  }

 private:
  std::unique_ptr<Lrn> lrn_;
};

class BoundBatchNorm : public BoundLayer {
 public:
  explicit BoundBatchNorm(std::unique_ptr<BatchNorm> norm) : norm_(std::move(norm)) {
    y = norm_->y;
    parameters.assign(4, plain_desc({norm_->x.shape.c()}));
  }

  void forward(Tensor& y, const std::vector<Tensor>& x, std::vector<Tensor>& p,
               const ForwardContext& context) override {
    run(y, x, p, context, {});
  }
  bool joins_sum(const TensorDesc& other) const override {
    return norm_->adds() && same_storage(norm_->y, other);
  }
  void forward_into_sum(Tensor& sum, const Tensor& other, bool relu, const std::vector<Tensor>& x,
                        std::vector<Tensor>& p, const ForwardContext& context) override {
    run(sum, x, p, context, {&other, relu});
  }
  void sum_gradients(Tensor& dy, const std::vector<Tensor>& inputs, const Tensor* sum,
                     std::vector<Tensor>& dp, const std::vector<Tensor>& x) override {
    norm_->backward_sum(dy, dp[0], dp[1], inputs, sum, x[0]);
  }
  void backward(std::vector<Tensor>& dx, std::vector<Tensor>& dp, const Tensor& dy,
                const std::vector<Tensor>& x, const Tensor&,
                const std::vector<Tensor>& p) override {
    norm_->backward(dx[0], dp[0], dp[1], dy, x[0], p[0]);
  }

 private:
  void run(Tensor& y, const std::vector<Tensor>& x, std::vector<Tensor>& p,
           const ForwardContext& context, const Addend& added) {
    if (context.training) {
      norm_->forward_training(y, p[2], p[3], x[0], p[0], p[1], added);
    } else {
      norm_->forward_inference(y, x[0], p[0], p[1], p[2], p[3], added);
    }
  }

  std::unique_ptr<BatchNorm> norm_;
};

}  // namespace

LayerTraits LrnLayer::traits() const {
  LayerTraits traits;
  traits.backward_reads_x = true;
  return traits;
}

std::optional<std::vector<Channels>> LrnLayer::reads(const std::vector<Shape>& x,
                                                     const Channels& y) const {
  const std::int64_t reach = spec_.size / 2;
  return {{{std::max<std::int64_t>(y.first - reach, 0), std::min(y.end + reach, x[0].c())}}};
}

std::unique_ptr<BoundLayer> LrnLayer::bind(Device& device, const std::string&,
                                           const std::vector<TensorDesc>& x,
                                           const BindContext&) const {
  return std::make_unique<BoundLrn>(device.lrn(spec_, x[0]));
}

LayerTraits BatchNormLayer::traits() const {
  LayerTraits traits;  // relu stays false: BatchNorm::backward masks dy itself.
  traits.backward_reads_x = true;
  traits.writes_every_dx = true;
  return traits;
}

std::vector<ParameterSpec> BatchNormLayer::parameters(const std::vector<Shape>& x) const {
  const Shape channels{x[0].c()};
  return {{"weight", channels, {1.0F, 0.0F}, true},
          {"bias", channels, {}, true},
          {"running_mean", channels, {}, false},
          {"running_var", channels, {1.0F, 0.0F}, false}};
}

std::unique_ptr<BoundLayer> BatchNormLayer::bind(Device& device, const std::string&,
                                                 const std::vector<TensorDesc>& x,
                                                 const BindContext& context) const {
  const Shape& shape = x[0].shape;
  if (context.wanted != Gradients::none && shape.n() * shape.h() * shape.w() == 1) {
    throw Error(
        "batch normalisation cannot train on a single value of each channel; take a larger "
        "--batch or --input",
        Exit::usage);
  }
  return std::make_unique<BoundBatchNorm>(device.batch_norm(spec_, x[0]));
}

}  // namespace duplex
