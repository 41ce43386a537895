// The linear layers of a network that is cut whose gradients can be exchanged as factors: those of
// which several ranks compute the same rows, for samples of their own.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "layers/model.h"
#include "layers/parts/cut_network.h"
#include "layers/parts/part_spans.h"

namespace duplex {

/// A linear layer, or some rows of it.
struct PartLinear {
  std::size_t weights = 0, bias = 0;  ///< Numbers of the spans.
  std::size_t outputs = 0, inputs = 0;
  std::vector<std::int64_t> samples;  ///< Of a micro-batch, by rank; 0: it does not train with it.
};

/// Returns them in forward order. `spans`: those of the cut. Left out are rows that only one rank
/// has, and those that a rank computes together with others, or more than once.
std::vector<PartLinear> part_linears(const CutNetwork& cut, const std::vector<PartSpan>& spans);

/// Returns what is `layer` in a rank's part, whose parameters are those of `places` (span_places).
Model::Linear linear_of(const PartLinear& layer, const Model& part,
                        const std::vector<std::vector<SpanPlace>>& places);

}  // namespace duplex
