#include "layers/parts/gather.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace duplex {
namespace {

class BoundGather : public BoundLayer {
 public:
  BoundGather(Device& device, std::vector<Region> inputs, std::vector<GatherLayer::Piece> pieces,
              const Region& output, const Shape& shape)
      : device_(device),
        inputs_(std::move(inputs)),
        pieces_(std::move(pieces)),
        output_(output),
        map_(shape.h() * shape.w()),
        plain_(static_cast<std::size_t>(shape.elements())) {
    y = plain_desc(shape);
    std::size_t most = 0;
    for (const Region& input : inputs_) most = std::max(most, input.elements(map_));
    input_.resize(most);
  }

  void forward(Tensor& y, const std::vector<Tensor>& x, std::vector<Tensor>&,
               const ForwardContext&) override {
    std::fill(plain_.begin(), plain_.end(), 0.0F);
    for (std::size_t i = 0; i < x.size(); ++i) {
      device_.download(input_.data(), x[i]);
      for_each_run_of(i, [&](std::size_t from, std::size_t to, std::size_t count) {
        std::memcpy(plain_.data() + to, input_.data() + from, count * sizeof(float));
      });
    }
    device_.upload(y, plain_.data());
  }

  void backward(std::vector<Tensor>& dx, std::vector<Tensor>&, const Tensor& dy,
                const std::vector<Tensor>&, const Tensor&, const std::vector<Tensor>&) override {
    device_.download(plain_.data(), dy);
    for (std::size_t i = 0; i < dx.size(); ++i) {
      if (!dx[i]) continue;
      std::fill_n(input_.begin(), inputs_[i].elements(map_), 0.0F);
      for_each_run_of(i, [&](std::size_t to, std::size_t from, std::size_t count) {
        for (std::size_t k = 0; k < count; ++k) input_[to + k] += plain_[from + k];
      });
      device_.upload(dx[i], input_.data());
    }
  }

 private:
  /// Calls work(offset in the input, offset in the output, elements).
  template <class Work>
  void for_each_run_of(std::size_t input, const Work& work) const {
    for (const GatherLayer::Piece& piece : pieces_) {
      if (piece.input != input) continue;
      Region shifted = output_;  // In the numbers that the input's channels have.
      shifted.channels.first -= piece.shift;
      shifted.channels.end -= piece.shift;
      for_each_run(piece.taken, inputs_[input], shifted, map_, work);
    }
  }

  Device& device_;
  std::vector<Region> inputs_;
  std::vector<GatherLayer::Piece> pieces_;
  Region output_;
  std::int64_t map_;
  std::vector<float> plain_, input_;  ///< The output and an input, plain.
};

}  // namespace

std::unique_ptr<BoundLayer> GatherLayer::bind(Device& device, const std::string&,
                                              const std::vector<TensorDesc>&,
                                              const BindContext&) const {
  return std::make_unique<BoundGather>(device, inputs_, pieces_, output_,
                                       with_samples(sample_, output_.samples));
}

}  // namespace duplex
