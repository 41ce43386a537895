#include "layers/kinds/loss.h"

#include "core/error.h"

namespace duplex {
namespace {

class BoundLoss : public BoundLayer {
 public:
  BoundLoss(std::unique_ptr<Loss> loss, float weight, std::int64_t first_sample)
      : loss_(std::move(loss)), weight_(weight), first_sample_(first_sample) {
    y = loss_->y;
  }

  void prepare(const ForwardContext& context) override {
    if (context.labels) loss_->prepare(context.labels + first_sample_);
  }
  void forward(Tensor& y, const std::vector<Tensor>& x, std::vector<Tensor>&,
               const ForwardContext& context) override {
    loss_->forward(y, x[0], context.labels ? context.labels + first_sample_ : nullptr);
  }
  void backward(std::vector<Tensor>& dx, std::vector<Tensor>&, const Tensor&,
                const std::vector<Tensor>&, const Tensor& y, const std::vector<Tensor>&) override {
    if (dx[0]) loss_->backward(dx[0], y, weight_);
  }
  double loss() override { return weight_ * loss_->value(); }

 private:
  std::unique_ptr<Loss> loss_;
  float weight_;
  std::int64_t first_sample_;
};

}  // namespace

LayerTraits LossLayer::traits() const {
  LayerTraits traits;
  traits.backward_reads_y = true;
  return traits;
}

Shape LossLayer::output(const std::vector<Shape>& x) const {
  if (x[0].h() != 1 || x[0].w() != 1) {
    throw Error("loss: expects a vector of one value per class for each sample, not " + x[0].str());
  }
  return x[0];
}

std::unique_ptr<BoundLayer> LossLayer::bind(Device& device, const std::string&,
                                            const std::vector<TensorDesc>& x,
                                            const BindContext& context) const {
  return std::make_unique<BoundLoss>(device.loss({kind_, context.label_smoothing}, x[0]), weight_,
                                     context.part.first_sample);
}

}  // namespace duplex
