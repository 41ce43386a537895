#include "layers/kinds/pool.h"

namespace duplex {
namespace {

class BoundPool : public BoundLayer {
 public:
  explicit BoundPool(std::unique_ptr<Pool> pool) : pool_(std::move(pool)) { y = pool_->y; }

  void forward(Tensor& y, const std::vector<Tensor>& x, std::vector<Tensor>&,
               const ForwardContext&) override {
    pool_->forward(y, x[0]);
  }
  void backward(std::vector<Tensor>& dx, std::vector<Tensor>&, const Tensor& dy,
                const std::vector<Tensor>&, const Tensor&, const std::vector<Tensor>&) override {
    if (dx[0]) pool_->backward(dx[0], dy);
  }

 private:
  std::unique_ptr<Pool> pool_;
};

}  // namespace

Shape PoolLayer::output(const std::vector<Shape>& x) const {
  return output_shape(PoolSpec{kind_, geometry_.window(x[0])}, x[0]);
}

std::unique_ptr<BoundLayer> PoolLayer::bind(Device& device, const std::string&,
                                            const std::vector<TensorDesc>& x,
                                            const BindContext&) const {
  return std::make_unique<BoundPool>(device.pool({kind_, geometry_.window(x[0].shape)}, x[0]));
}

}  // namespace duplex
