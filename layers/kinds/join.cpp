#include "layers/kinds/join.h"

#include <algorithm>

#include "core/error.h"

namespace duplex {
namespace {

class BoundConcat : public BoundLayer {
 public:
  BoundConcat(std::unique_ptr<Concat> concat, std::vector<bool> relu_x)
      : concat_(std::move(concat)), relu_x_(std::move(relu_x)) {
    y = concat_->y;
  }

  void forward(Tensor& y, const std::vector<Tensor>& x, std::vector<Tensor>&,
               const ForwardContext&) override {
    concat_->forward(y, x);
  }
  void backward(std::vector<Tensor>& dx, std::vector<Tensor>&, const Tensor& dy,
                const std::vector<Tensor>&, const Tensor& y, const std::vector<Tensor>&) override {
    for (std::size_t i = 0; i < dx.size(); ++i) {
      if (dx[i]) concat_->backward(dx[i], static_cast<int>(i), dy, relu_x_[i] ? &y : nullptr);
    }
  }

 private:
  std::unique_ptr<Concat> concat_;
  std::vector<bool> relu_x_;
};

class BoundAdd : public BoundLayer {
 public:
  explicit BoundAdd(std::unique_ptr<Add> add) : add_(std::move(add)) { y = add_->y; }

  void forward(Tensor& y, const std::vector<Tensor>& x, std::vector<Tensor>&,
               const ForwardContext&) override {
    add_->forward(y, x[0], x[1]);
  }
  void backward(std::vector<Tensor>&, std::vector<Tensor>&, const Tensor&,
                const std::vector<Tensor>&, const Tensor&, const std::vector<Tensor>&) override {}

 private:
  std::unique_ptr<Add> add_;
};

class BoundPadChannels : public BoundLayer {
 public:
  explicit BoundPadChannels(std::unique_ptr<PadChannels> pad) : pad_(std::move(pad)) {
    y = pad_->y;
  }

  void forward(Tensor& y, const std::vector<Tensor>& x, std::vector<Tensor>&,
               const ForwardContext&) override {
    pad_->forward(y, x[0]);
  }
  void backward(std::vector<Tensor>& dx, std::vector<Tensor>&, const Tensor& dy,
                const std::vector<Tensor>&, const Tensor&, const std::vector<Tensor>&) override {
    if (dx[0]) pad_->backward(dx[0], dy);
  }

 private:
  std::unique_ptr<PadChannels> pad_;
};

}  // namespace

LayerTraits ConcatLayer::traits() const {
  LayerTraits traits;
  traits.backward_reads_y = true;
  traits.masks_slices = true;
  return traits;
}

Shape ConcatLayer::output(const std::vector<Shape>& x) const {
  return concat_shape(x);
}

std::optional<std::vector<Channels>> ConcatLayer::reads(const std::vector<Shape>& x,
                                                        const Channels& y) const {
  std::vector<Channels> read;
  std::int64_t offset = 0;  // This input's channels begin there in the output.
  for (const Shape& shape : x) {
    const std::int64_t first = std::clamp<std::int64_t>(y.first - offset, 0, shape.c());
    read.push_back({first, std::clamp(y.end - offset, first, shape.c())});
    offset += shape.c();
  }
  return read;
}

std::unique_ptr<BoundLayer> ConcatLayer::bind(Device& device, const std::string&,
                                              const std::vector<TensorDesc>& x,
                                              const BindContext& context) const {
  return std::make_unique<BoundConcat>(device.concat(x), context.relu_x);
}

LayerTraits AddLayer::traits() const {
  LayerTraits traits;
  traits.relu = relu_;
  traits.gradient_passes = true;
  return traits;
}

Shape AddLayer::output(const std::vector<Shape>& x) const {
  if (x[0] != x[1]) throw Error("addition: " + x[0].str() + " and " + x[1].str() + " differ");
  return x[0];
}

std::unique_ptr<BoundLayer> AddLayer::bind(Device& device, const std::string&,
                                           const std::vector<TensorDesc>& x,
                                           const BindContext&) const {
  return std::make_unique<BoundAdd>(device.add(relu_, x[0], x[1]));
}

Shape PadChannelsLayer::output(const std::vector<Shape>& x) const {
  return pad_channels_shape(channels_, x[0]);
}

std::optional<std::vector<Channels>> PadChannelsLayer::reads(const std::vector<Shape>& x,
                                                             const Channels& y) const {
  return {{{std::min(y.first, x[0].c()), std::min(y.end, x[0].c())}}};
}

std::unique_ptr<BoundLayer> PadChannelsLayer::bind(Device& device, const std::string&,
                                                   const std::vector<TensorDesc>& x,
                                                   const BindContext&) const {
  return std::make_unique<BoundPadChannels>(device.pad_channels(channels_, x[0]));
}

}  // namespace duplex
