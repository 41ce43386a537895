#include "net/factors/factor_map.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace duplex::net {

FactorMap::FactorMap(std::vector<FactoredLayer> layers, std::size_t piece_bytes)
    : layers_(std::move(layers)) {
  const std::size_t most = std::max<std::size_t>(piece_bytes / sizeof(float), 1);
  for (std::size_t layer = 0; layer < layers_.size(); ++layer)
    for (std::size_t worker = 0; worker < workers(); ++worker) {
      std::vector<Chunk>& cut = pieces_.emplace_back();
      const std::size_t all = values(layer, static_cast<int>(worker));
      const std::size_t count = (all + most - 1) / most;
      for (std::size_t i = 0; i < count; ++i) {
        Chunk piece;
        piece.parameter = static_cast<std::uint32_t>(layers_[layer].weights);
        piece.number = static_cast<std::uint32_t>(i);
        piece.offset = all * i / count;
        piece.count = all * (i + 1) / count - piece.offset;
        cut.push_back(piece);
      }
    }
}

std::size_t FactorMap::all_samples(std::size_t layer) const {
  const std::vector<std::size_t>& samples = layers_[layer].samples;
  return std::accumulate(samples.begin(), samples.end(), std::size_t{0});
}

std::optional<std::size_t> FactorMap::layer_of(std::size_t parameter) const {
  for (std::size_t layer = 0; layer < layers_.size(); ++layer)
    if (layers_[layer].weights == parameter || layers_[layer].bias == parameter) return layer;
  return std::nullopt;
}

}  // namespace duplex::net
