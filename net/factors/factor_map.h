// Says which layers' gradients travel as factors, and in which pieces.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "net/topology/shard_map.h"

namespace duplex::net {

/// A linear layer whose gradients travel as factors (core/factors/outer_products.h). Every worker
/// that trains with it updates its own copy of weights and bias by the factors of all of these.
struct FactoredLayer {
  std::size_t weights = 0, bias = 0;    ///< Numbers of the parameters, the bias's behind the other.
  std::size_t outputs = 0, inputs = 0;  ///< Columns of dy and of x.
  /// Samples of each worker's part of a step, by worker; 0: it does not train with the layer.
  std::vector<std::size_t> samples;
};

/// A worker's factors of a layer are dy, (samples, outputs), and behind it x, (samples, inputs).
/// They are cut into pieces for the wire, like parameters into chunks.
class FactorMap {
 public:
  /// `layers` are in forward order, and have samples of the same number of workers.
  explicit FactorMap(std::vector<FactoredLayer> layers,
                     std::size_t piece_bytes = ShardMap::default_chunk_bytes);

  const std::vector<FactoredLayer>& layers() const { return layers_; }
  std::size_t workers() const { return layers_.empty() ? 0 : layers_.front().samples.size(); }
  std::size_t samples(std::size_t layer, int worker) const {
    return layers_[layer].samples[static_cast<std::size_t>(worker)];
  }
  bool trains(int worker, std::size_t layer) const { return samples(layer, worker) > 0; }
  /// Returns the samples of all workers together.
  std::size_t all_samples(std::size_t layer) const;
  /// Returns the layer that a parameter, weights or bias, belongs to; none: it is not factored.
  std::optional<std::size_t> layer_of(std::size_t parameter) const;
  /// Returns the number of values of a worker's factors of a layer.
  std::size_t values(std::size_t layer, int worker) const {
    return samples(layer, worker) * (layers_[layer].outputs + layers_[layer].inputs);
  }
  /// The pieces of a worker's factors of a layer, which are Chunks of the weights: their number,
  /// offset and count are those of the piece, `owner` and `index` mean nothing.
  const std::vector<Chunk>& pieces(std::size_t layer, int worker) const {
    return pieces_[layer * workers() + static_cast<std::size_t>(worker)];
  }

 private:
  std::vector<FactoredLayer> layers_;
  std::vector<std::vector<Chunk>> pieces_;  ///< By layer and worker.
};

}  // namespace duplex::net
