#include "layers/parts/crossing.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "core/map_exchange.h"

namespace duplex {
namespace {

std::int64_t map_of(const Shape& shape) {
  return shape.h() * shape.w();
}

class BoundSend : public BoundLayer {
 public:
  BoundSend(Device& device, Region own, std::vector<SendLayer::Piece> pieces, const TensorDesc& x)
      : device_(device),
        own_(own),
        pieces_(std::move(pieces)),
        map_(map_of(x.shape)),
        plain_(static_cast<std::size_t>(x.shape.elements())) {
    y = {x.shape, nullptr, 0};
  }

  void forward(Tensor&, const std::vector<Tensor>& x, std::vector<Tensor>&,
               const ForwardContext& context) override {
    context_ = context;
    const bool whole = pieces_.size() == 1 && pieces_[0].region == own_;
    if (!whole) device_.download(plain_.data(), x[0]);
    for (const SendLayer::Piece& piece : pieces_) {
      const MapMessage message{piece.transfer, false, context.micro_batch};
      float* const to = context.maps->room(message);
      if (whole) {
        device_.download(to, x[0]);
      } else {
        for_each_run(piece.region, own_, piece.region, map_,
                     [&](std::size_t from, std::size_t at, std::size_t count) {
                       std::memcpy(to + at, plain_.data() + from, count * sizeof(float));
                     });
      }
      context.maps->send(message);
    }
  }

  void backward(std::vector<Tensor>& dx, std::vector<Tensor>&, const Tensor&,
                const std::vector<Tensor>&, const Tensor&, const std::vector<Tensor>&) override {
    const bool whole = pieces_.size() == 1 && pieces_[0].region == own_;
    if (!whole) std::fill(plain_.begin(), plain_.end(), 0.0F);
    for (const SendLayer::Piece& piece : pieces_) {
      if (!piece.gradient) continue;
      const MapMessage message{piece.transfer, true, context_.micro_batch};
      const float* const from = await(*context_.maps, message);
      if (whole) {
        device_.upload(dx[0], from);
      } else {
        for_each_run(piece.region, own_, piece.region, map_,
                     [&](std::size_t to, std::size_t at, std::size_t count) {
                       for (std::size_t i = 0; i < count; ++i) plain_[to + i] += from[at + i];
                     });
      }
      context_.maps->release(message);
    }
    if (!whole) device_.upload(dx[0], plain_.data());
  }

 private:
  Device& device_;
  Region own_;
  std::vector<SendLayer::Piece> pieces_;
  std::int64_t map_;
  std::vector<float> plain_;
  ForwardContext context_;  ///< That of the last forward.
};

/// Finds how a device lays out the outputs of a network's nodes.
class Layouts {
 public:
  Layouts(const Model& network, Device& device, std::int64_t samples)
      : network_(network), device_(device), samples_(samples) {}

  TensorDesc of(Model::Node node) {
    const Model::Entry& entry = network_.entry(node);
    const TensorDesc plain = plain_desc(with_samples(entry.shape, samples_));
    if (!entry.layer) return plain;
    if (const auto known = known_.find(node); known != known_.end()) return known->second;
    // A convolution's output is laid out as its spec says, whatever its input is.
    const bool own = entry.layer->convolution(network_.input_shapes(entry)).has_value();
    std::vector<TensorDesc> x;
    for (const Model::Node input : entry.inputs)
      x.push_back(own ? plain_desc(with_samples(network_.shape(input), samples_)) : of(input));
    BindContext context;
    context.relu_x.assign(x.size(), false);
    context.wanted = Gradients::none;
    context.part.samples = samples_;
    return known_[node] = entry.layer->bind(device_, entry.name, x, context)->y;
  }

 private:
  const Model& network_;
  Device& device_;
  std::int64_t samples_;
  std::map<Model::Node, TensorDesc> known_;
};

class BoundReceive : public BoundLayer {
 public:
  BoundReceive(Device& device, std::size_t transfer, const TensorDesc& desc)
      : device_(device), transfer_(transfer) {
    y = desc;
  }

  void forward(Tensor& y, const std::vector<Tensor>&, std::vector<Tensor>&,
               const ForwardContext& context) override {
    context_ = context;
    const MapMessage message{transfer_, false, context.micro_batch};
    device_.upload(y, await(*context.maps, message));
    context.maps->release(message);
  }

  void backward(std::vector<Tensor>&, std::vector<Tensor>&, const Tensor& dy,
                const std::vector<Tensor>&, const Tensor&, const std::vector<Tensor>&) override {
    const MapMessage message{transfer_, true, context_.micro_batch};
    device_.download(context_.maps->room(message), dy);
    context_.maps->send(message);
  }

 private:
  Device& device_;
  std::size_t transfer_;
  ForwardContext context_;  ///< That of the last forward.
};

}  // namespace

LayerTraits SendLayer::traits() const {
  LayerTraits traits;
  traits.takes_gradient = std::any_of(pieces_.begin(), pieces_.end(),
                                      [](const Piece& piece) { return piece.gradient; });
  return traits;
}

std::unique_ptr<BoundLayer> SendLayer::bind(Device& device, const std::string&,
                                            const std::vector<TensorDesc>& x,
                                            const BindContext&) const {
  return std::make_unique<BoundSend>(device, own_, pieces_, x[0]);
}

LayerTraits ReceiveLayer::traits() const {
  LayerTraits traits;
  traits.returns_gradient = gradient_;
  return traits;
}

std::unique_ptr<BoundLayer> ReceiveLayer::bind(Device& device, const std::string&,
                                               const std::vector<TensorDesc>&,
                                               const BindContext& context) const {
  const std::int64_t samples = context.part.samples;
  const bool laid_out = origin_.network && device.lays_out_by_operation();
  return std::make_unique<BoundReceive>(
      device, transfer_,
      laid_out ? Layouts(*origin_.network, device, samples).of(origin_.node)
               : plain_desc(with_samples(sample_, samples)));
}

}  // namespace duplex
