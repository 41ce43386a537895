#include "layers/exchange/host_parameters.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "layers/checkpoint.h"

namespace duplex {

bool all_finite(const float* values, std::size_t count) {
  return std::all_of(values, values + count, [](float value) { return std::isfinite(value); });
}

HostParameters::HostParameters(const Model& model, bool gradients) : specs_(model.trained()) {
  std::size_t elements = 0;
  for (const ParameterSpec& spec : specs_) {
    spans_.push_back(
        {spec.name, static_cast<std::size_t>(spec.shape.elements()), nullptr, nullptr});
    elements += spans_.back().count;
  }
  weights_ = map_memory(elements * sizeof(float));
  if (gradients) {
    gradients_ = map_memory(elements * sizeof(float));
    // Writing makes the system provide the memory now, so that the first step need not wait for it,
    // and a step that computes nothing (replay) has it too.
    std::memset(gradients_.data(), 0, gradients_.bytes());
  }
  std::size_t offset = 0;
  for (Span& span : spans_) {
    span.weights = static_cast<float*>(weights_.data()) + offset;
    if (gradients) span.gradient = static_cast<float*>(gradients_.data()) + offset;
    offset += span.count;
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
