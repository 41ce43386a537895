// Defines the layer that puts a map together from pieces of others.
#pragma once
#include <vector>

#include "layers/layer.h"
#include "layers/placement/region.h"

namespace duplex {

/// The output has the pieces, and zeros elsewhere. Backward gives every input the gradient of what
/// was taken of it, and zero for the rest.
class GatherLayer : public Layer {
 public:
  struct Piece {
    std::size_t input = 0;
    Region taken;            ///< Part of the input.
    std::int64_t shift = 0;  ///< Its channels have numbers greater by this in the output.
  };

  /// `inputs`: the regions that they are; `output`: the one that the output is, and `sample`: the
  /// shape of one sample of it (N = 1). Without inputs, the output is zeros.
  GatherLayer(std::vector<Region> inputs, std::vector<Piece> pieces, const Region& output,
              const Shape& sample)
      : inputs_(std::move(inputs)), pieces_(std::move(pieces)), output_(output), sample_(sample) {}

  std::string type() const override { return "gather"; }
  Shape output(const std::vector<Shape>&) const override { return sample_; }
  std::unique_ptr<BoundLayer> bind(Device& device, const std::string& name,
                                   const std::vector<TensorDesc>& x,
                                   const BindContext& context) const override;

 private:
  std::vector<Region> inputs_;
  std::vector<Piece> pieces_;
  Region output_;
  Shape sample_;
};

}  // namespace duplex
