// The layers of a rank's part, for one micro-batch at a time: those of a network, or of a replay.
#pragma once
#include <cstddef>
#include <memory>
#include <vector>

#include "core/device.h"
#include "layers/network.h"
#include "layers/parts/network_part.h"

namespace duplex {

/// Layers go by their number in Model::nodes.
class PartLayers {
 public:
  virtual ~PartLayers() = default;

  /// `images`: of the samples of NetworkPart, null where it reads none. They are read before this
  /// returns; the context's labels must live until begin_backward().
  virtual void begin(const float* images, const ForwardContext& context) = 0;
  virtual void forward(std::size_t layer) = 0;   ///< Called in ascending order.
  virtual void begin_backward() = 0;             ///< All layers' forward is over.
  virtual void backward(std::size_t layer) = 0;  ///< Called in descending order.
  /// Returns the sum of the losses that are computed here, after the backward.
  virtual double loss() = 0;
  /// Returns when all of that has been computed.
  virtual void synchronize() = 0;
};

/// The network must outlive it.
class NetworkLayers final : public PartLayers {
 public:
  explicit NetworkLayers(Network& network) : network_(network) {}

  void begin(const float* images, const ForwardContext& context) override {
    network_.begin_forward(images, context);
  }
  void forward(std::size_t layer) override { network_.forward_layer(layer); }
  void begin_backward() override { network_.begin_backward(); }
  void backward(std::size_t layer) override { network_.backward_layer(layer); }
  double loss() override { return network_.loss(); }
  void synchronize() override { network_.synchronize(); }

 private:
  Network& network_;
};

/// Makes networks of a part for so many micro-batches at a time. They have the parameters of the
/// first.
inline std::vector<std::unique_ptr<Network>> networks_of(const NetworkPart& part, Device& device,
                                                         std::uint64_t count) {
  std::vector<std::unique_ptr<Network>> networks;
  networks.push_back(std::make_unique<Network>(part.model, device, part.images));
  while (networks.size() < count) networks.push_back(networks.front()->with_own_activations());
  return networks;
}

}  // namespace duplex
