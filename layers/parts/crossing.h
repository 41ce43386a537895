// Defines the layers at the edges of a rank's part of a network: what leaves for other ranks, and
// what comes from them.
#pragma once
#include <memory>
#include <utility>
#include <vector>

#include "layers/model.h"
#include "layers/placement/region.h"

namespace duplex {

/// Sends regions of its input to other ranks. Backward gives the input the sum of the gradients
/// that come back, in their order, and zero where none does. It has no output.
class SendLayer : public Layer {
 public:
  struct Piece {
    std::size_t transfer = 0;  ///< Number in CutNetwork::transfers().
    Region region;
    bool gradient = false;  ///< A gradient comes back.
  };

  /// `own`: the region that the input is.
  SendLayer(const Region& own, std::vector<Piece> pieces) : own_(own), pieces_(std::move(pieces)) {}

  const std::vector<Piece>& pieces() const { return pieces_; }
  std::string type() const override { return "send"; }
  LayerTraits traits() const override;
  Shape output(const std::vector<Shape>& x) const override { return x[0]; }
  std::unique_ptr<BoundLayer> bind(Device& device, const std::string& name,
                                   const std::vector<TensorDesc>& x,
                                   const BindContext& context) const override;

 private:
  Region own_;
  std::vector<Piece> pieces_;
};

/// Is what a rank sends, as a layer without inputs. Backward sends the output's gradient back.
class ReceiveLayer : public Layer {
 public:
  /// The map is a whole node's of this network: its layout is that which the device would give it.
  struct Origin {
    std::shared_ptr<const Model> network;
    Model::Node node = 0;
  };

  /// `sample`: the shape of one sample (N = 1). With `gradient` off, none is sent back. Without an
  /// origin, the output is plain.
  ReceiveLayer(std::size_t transfer, const Shape& sample, bool gradient)
      : transfer_(transfer), sample_(sample), gradient_(gradient) {}
  ReceiveLayer(std::size_t transfer, const Shape& sample, bool gradient, Origin origin)
      : transfer_(transfer), sample_(sample), gradient_(gradient), origin_(std::move(origin)) {}

  std::size_t transfer() const { return transfer_; }
  std::string type() const override { return "receive"; }
  LayerTraits traits() const override;
  Shape output(const std::vector<Shape>&) const override { return sample_; }
  std::unique_ptr<BoundLayer> bind(Device& device, const std::string& name,
                                   const std::vector<TensorDesc>& x,
                                   const BindContext& context) const override;

 private:
  std::size_t transfer_;
  Shape sample_;
  bool gradient_;
  Origin origin_;
};

}  // namespace duplex
