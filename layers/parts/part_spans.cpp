#include "layers/parts/part_spans.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <set>

namespace duplex {
namespace {

/// Cuts the channels of a unit into runs, of each of which the same ranks have all.
std::vector<Channels> runs_of(const CutNetwork& cut, std::size_t unit) {
  std::set<std::int64_t> bounds;
  for (const PlacedRegion& piece : cut.pieces()) {
    if (piece.unit != unit) continue;
    bounds.insert(piece.region.channels.first);
    bounds.insert(piece.region.channels.end);
  }
  std::vector<Channels> runs;
  for (auto bound = bounds.begin(); std::next(bound) != bounds.end(); ++bound)
    runs.push_back({*bound, *std::next(bound)});
  return runs;
}

std::vector<int> members_of(const CutNetwork& cut, std::size_t unit, const Channels& run) {
  std::set<int> members;
  for (const PlacedRegion& piece : cut.pieces())
    if (piece.unit == unit && piece.region.channels.first <= run.first &&
        run.end <= piece.region.channels.end)
      members.insert(piece.rank);
  return {members.begin(), members.end()};
}

}  // namespace

std::vector<PartSpan> part_spans(const CutNetwork& cut) {
  std::vector<PartSpan> spans;
  const Model& whole = cut.whole();
  std::size_t parameter = 0;
  for (std::size_t node = 1; node < whole.nodes().size(); ++node) {
    for (const ParameterSpec& spec : whole.parameters(whole.nodes()[node])) {
      if (!spec.trained) continue;
      const auto unit =
          static_cast<std::size_t>(cut.units().unit_of(static_cast<Model::Node>(node)));
      const std::int64_t row = spec.shape.elements() / spec.shape[0];
      for (const Channels& run : runs_of(cut, unit)) {
        PartSpan span;
        span.name = spec.name;
        if (run.count() != cut.units()[unit].channels)
          span.name += "[" + std::to_string(run.first) + ":" + std::to_string(run.end) + "]";
        span.parameter = parameter;
        span.first = static_cast<std::size_t>(run.first * row);
        span.count = static_cast<std::size_t>(run.count() * row);
        span.members = members_of(cut, unit, run);
        spans.push_back(std::move(span));
      }
      ++parameter;
    }
  }
  return spans;
}

std::vector<std::vector<SpanPlace>> span_places(const std::vector<PartSpan>& spans, int rank,
                                                const Model& part) {
  // The part's parameters, by the name of the whole one.
  std::map<std::string, std::vector<std::size_t>> parts;
  const std::vector<ParameterSpec> specs = part.trained();
  for (std::size_t p = 0; p < specs.size(); ++p)
    parts[specs[p].rows.parameter.empty() ? specs[p].name : specs[p].rows.parameter].push_back(p);
  std::vector<std::vector<SpanPlace>> places(spans.size());
  for (std::size_t s = 0; s < spans.size(); ++s) {
    const PartSpan& each = spans[s];
    if (!std::binary_search(each.members.begin(), each.members.end(), rank)) continue;
    for (const std::size_t p : parts.at(each.whole_name())) {
      const auto first = static_cast<std::size_t>(specs[p].rows.first);
      const auto count = static_cast<std::size_t>(specs[p].shape.elements());
      if (each.first >= first && each.first + each.count <= first + count)
        places[s].push_back({p, each.first - first});
    }
  }
  return places;
}

PartExchange::PartExchange(const std::vector<PartSpan>& spans, int rank, const Model& part,
                           const HostParameters& host, const HostParameters* whole)
    : described_(spans), own_(spans.size()), of_(host.spans().size()) {
  const std::vector<std::vector<SpanPlace>> places = span_places(spans, rank, part);
  for (std::size_t s = 0; s < spans.size(); ++s) {
    const PartSpan& each = spans[s];
    Span span;
    span.name = each.name;
    span.count = each.count;
    Own& own = own_[s];
    for (const SpanPlace& place : places[s]) {
      const Span& of = host.spans()[place.parameter];
      float* gradient = of.gradient == nullptr ? nullptr : of.gradient + place.offset;
      own.places.push_back({place.parameter, of.weights + place.offset, gradient});
      of_[place.parameter].push_back(s);
    }
    if (own.places.size() == 1) {
      span.weights = own.places[0].weights;
      span.gradient = own.places[0].gradient;
      span.factors = host.spans()[own.places[0].parameter].factors;
      span.factor_count = host.spans()[own.places[0].parameter].factor_count;
    } else if (!own.places.empty()) {
      own.weights = map_memory(each.count * sizeof(float));
      own.gradient = map_memory(each.count * sizeof(float));
      span.weights = static_cast<float*>(own.weights.data());
      span.gradient = static_cast<float*>(own.gradient.data());
      std::memcpy(span.weights, own.places[0].weights, each.count * sizeof(float));
    } else if (whole != nullptr) {
      span.weights = whole->spans()[each.parameter].weights + each.first;
    }
    spans_.push_back(span);
  }
}

void PartExchange::begin(std::uint64_t step) {
  for (Own& own : own_) own.pushed = 0;
  inner_->begin(step);
}

void PartExchange::await(std::size_t parameter) {
  for (const std::size_t s : of_[parameter]) {
    inner_->await(s);
    for (const Place& place : own_[s].places)
      if (place.parameter == parameter && place.weights != spans_[s].weights)
        std::memcpy(place.weights, spans_[s].weights, spans_[s].count * sizeof(float));
  }
}

void PartExchange::push(std::size_t parameter) {
  for (const std::size_t s : of_[parameter]) {
    Own& own = own_[s];
    if (++own.pushed < own.places.size()) continue;
    if (own.places.size() > 1) {
      std::memcpy(spans_[s].gradient, own.places[0].gradient, spans_[s].count * sizeof(float));
      for (std::size_t i = 1; i < own.places.size(); ++i)
        for (std::size_t k = 0; k < spans_[s].count; ++k)
          spans_[s].gradient[k] += own.places[i].gradient[k];
    }
    inner_->push(s);
  }
}

std::string PartExchange::not_finite() const {
  for (std::size_t s = 0; s < spans_.size(); ++s)
    if (!own_[s].places.empty() && !all_finite(spans_[s].weights, spans_[s].count))
      return spans_[s].name;
  return "";
}

void PartExchange::copy_weights(const HostParameters& whole) const {
  for (std::size_t s = 0; s < spans_.size(); ++s)
    if (!own_[s].places.empty())
      std::memcpy(whole.spans()[described_[s].parameter].weights + described_[s].first,
                  spans_[s].weights, spans_[s].count * sizeof(float));
}

}  // namespace duplex
