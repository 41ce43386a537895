#include "layers/parts/part_factors.h"

#include <algorithm>
#include <optional>

namespace duplex {
namespace {

/// Returns the samples that each rank computes of exactly these channels of a unit; none: some rank
/// computes more channels with them, or them twice.
std::optional<std::vector<std::int64_t>> samples_of(const CutNetwork& cut, std::size_t unit,
                                                    const Channels& rows) {
  std::vector<std::int64_t> samples(static_cast<std::size_t>(cut.placement().ranks), 0);
  for (const PlacedRegion& piece : cut.pieces()) {
    const Channels& own = piece.region.channels;
    if (piece.unit != unit || own.end <= rows.first || rows.end <= own.first) continue;
    std::int64_t& here = samples[static_cast<std::size_t>(piece.rank)];
    if (own.first != rows.first || own.end != rows.end || here > 0) return std::nullopt;
    here = piece.region.samples;
  }
  return samples;
}

}  // namespace

std::vector<PartLinear> part_linears(const CutNetwork& cut, const std::vector<PartSpan>& spans) {
  std::vector<PartLinear> found;
  for (const Model::Linear& layer : cut.whole().linear_layers()) {
    const auto unit =
        static_cast<std::size_t>(cut.units().unit_of(static_cast<Model::Node>(layer.node)));
    for (std::size_t s = 0; s < spans.size(); ++s) {
      const PartSpan& weights = spans[s];
      if (weights.parameter != layer.weights || weights.members.size() < 2) continue;
      const std::size_t first = weights.first / layer.inputs, rows = weights.count / layer.inputs;
      const auto bias = std::find_if(spans.begin(), spans.end(), [&](const PartSpan& span) {
        return span.parameter == layer.bias && span.first == first && span.count == rows;
      });
      const auto samples = samples_of(
          cut, unit, {static_cast<std::int64_t>(first), static_cast<std::int64_t>(first + rows)});
      if (bias == spans.end() || !samples) continue;
      found.push_back(
          {s, static_cast<std::size_t>(bias - spans.begin()), rows, layer.inputs, *samples});
    }
  }
  return found;
}

Model::Linear linear_of(const PartLinear& layer, const Model& part,
                        const std::vector<std::vector<SpanPlace>>& places) {
  const std::vector<Model::Linear> linears = part.linear_layers();
  return *std::find_if(linears.begin(), linears.end(), [&](const Model::Linear& each) {
    return each.weights == places[layer.weights].front().parameter;
  });
}

}  // namespace duplex
