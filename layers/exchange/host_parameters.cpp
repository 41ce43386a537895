#include "layers/exchange/host_parameters.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "layers/checkpoint.h"

namespace duplex {

bool all_finite(const float* values, std::size_t count) {
  return std::all_of(values, values + count, [](float value) { return std::isfinite(value); });
}

HostParameters::HostParameters(const Model& model, bool gradients,
                               const std::vector<Model::Linear>& factored, std::size_t samples)
    : specs_(model.trained()), factored_(factored) {
  std::size_t elements = 0;
  for (const ParameterSpec& spec : specs_) {
    Span& span = spans_.emplace_back();
    span.name = spec.name;
    span.count = static_cast<std::size_t>(spec.shape.elements());
    elements += span.count;
  }
  weights_ = map_memory(elements * sizeof(float));
  std::vector<bool> whole(spans_.size(), true);  // Parameters that have a gradient.
  std::size_t exchanged = elements;
  for (const Model::Linear& layer : factored_) {
    for (const std::size_t p : {layer.weights, layer.bias}) {
      whole[p] = false;
      exchanged -= spans_[p].count;
    }
    exchanged += samples * (layer.outputs + layer.inputs);
  }
  if (gradients) {
    gradients_ = map_memory(exchanged * sizeof(float));
    // Writing makes the system provide the memory now, so that the first step need not wait for it,
    // and a step that computes nothing (replay) has it too.
    std::memset(gradients_.data(), 0, gradients_.bytes());
  }
  std::size_t offset = 0;
  auto* gradient = static_cast<float*>(gradients_.data());
  for (std::size_t p = 0; p < spans_.size(); ++p) {
    Span& span = spans_[p];
    span.weights = static_cast<float*>(weights_.data()) + offset;
    offset += span.count;
    if (!gradients || !whole[p]) continue;
    span.gradient = gradient;
    gradient += span.count;
  }
  for (const Model::Linear& layer : factored_) {
    if (!gradients) break;
    Span& span = spans_[layer.weights];
    span.factors = gradient;
    span.factor_count = samples * (layer.outputs + layer.inputs);
    gradient += span.factor_count;
  }
}

void HostParameters::fill(const Model& model, std::uint64_t seed, const std::string& path,
                          const Visit& visit) {
  std::size_t next = 0;
  const auto take = [&](const ParameterSpec& spec, const float* values) {
    visit(spec, values);
    if (!spec.trained) return;
    const auto count = static_cast<std::size_t>(spec.shape.elements());
    if (values != spans_[next].weights) std::copy_n(values, count, spans_[next].weights);
    ++next;
  };
  if (!path.empty()) {
    read_checkpoint(path, model, take);
    return;
  }
  std::vector<float> statistics;
  for (const Model::Entry& layer : model.nodes()) {
    for (const ParameterSpec& spec : model.parameters(layer)) {
      statistics.resize(static_cast<std::size_t>(spec.trained ? 0 : spec.shape.elements()));
      float* values = spec.trained ? spans_[next].weights : statistics.data();
      draw_initial(spec, seed, values);
      take(spec, values);
    }
  }
}

std::string HostParameters::not_finite() const {
  for (const Span& span : spans_) {
    if (!all_finite(span.weights, span.count)) return span.name;
  }
  return "";
}

std::vector<std::shared_ptr<void>> HostParameters::pin(Device& device) const {
  return {device.pin(weights_.data(), weights_.bytes()),
          device.pin(gradients_.data(), gradients_.bytes())};
}

}  // namespace duplex
