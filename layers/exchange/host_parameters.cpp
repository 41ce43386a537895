#include "layers/exchange/host_parameters.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "layers/checkpoint.h"

namespace duplex {

bool all_finite(const float* values, std::size_t count) {
  return std::all_of(values, values + count, [](float value) { return std::isfinite(value); });
}

namespace {

/// Writing makes the system provide the memory now, so that the first step need not wait for it,
/// and a step that computes nothing (replay) has it too.
Buffer map_gradients(std::size_t elements) {
  Buffer memory = map_memory(elements * sizeof(float));
  std::memset(memory.data(), 0, memory.bytes());
  return memory;
}

}  // namespace

HostParameters::HostParameters(const Model& model, bool gradients,
                               const std::vector<Model::Linear>& factored,
                               const std::vector<std::size_t>& samples)
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
  std::vector<std::size_t> factors;  // Of each factored layer.
  for (std::size_t i = 0; i < factored_.size(); ++i) {
    const Model::Linear& layer = factored_[i];
    for (const std::size_t p : {layer.weights, layer.bias}) {
      whole[p] = false;
      exchanged -= spans_[p].count;
    }
    factors.push_back(samples[i] * (layer.outputs + layer.inputs));
    exchanged += factors.back();
  }
  std::size_t offset = 0;
  for (Span& span : spans_) {
    span.weights = static_cast<float*>(weights_.data()) + offset;
    offset += span.count;
  }
  if (!gradients) return;
  gradients_ = map_gradients(exchanged);
  float* gradient = place_gradients(whole);
  for (std::size_t i = 0; i < factored_.size(); ++i) {
    Span& span = spans_[factored_[i].weights];
    span.factors = gradient;
    span.factor_count = factors[i];
    gradient += span.factor_count;
  }
}

HostParameters::HostParameters(const Model& model, const HostParameters& first)
    : specs_(model.trained()), factored_(first.factored_), spans_(first.spans_) {
  std::vector<bool> whole;
  std::size_t elements = 0;
  for (const Span& span : spans_) {
    whole.push_back(span.gradient != nullptr);
    if (whole.back()) elements += span.count;
  }
  gradients_ = map_gradients(elements);
  place_gradients(whole);
}

/// Gives these parameters their gradients, one behind the other. Returns what is behind them.
float* HostParameters::place_gradients(const std::vector<bool>& whole) {
  auto* gradient = static_cast<float*>(gradients_.data());
  for (std::size_t p = 0; p < spans_.size(); ++p) {
    if (!whole[p]) continue;
    spans_[p].gradient = gradient;
    gradient += spans_[p].count;
  }
  return gradient;
}

void visit_first_values(const Model& model, std::uint64_t seed, const std::string& path,
                        const VisitFirstValues& visit) {
  if (!path.empty()) return read_checkpoint(path, model, visit);
  std::vector<float> values;
  for (const Model::Entry& layer : model.nodes()) {
    for (const ParameterSpec& spec : model.parameters(layer)) {
      values.resize(static_cast<std::size_t>(spec.shape.elements()));
      draw_initial(spec, seed, values.data());
      visit(spec, values.data());
    }
  }
}

void HostParameters::fill(const Model& model, std::uint64_t seed, const std::string& path,
                          const VisitFirstValues& visit) {
  std::size_t next = 0;
  visit_first_values(model, seed, path, [&](const ParameterSpec& spec, const float* values) {
    visit(spec, values);
    if (!spec.trained) return;
    std::copy_n(values, spec.shape.elements(), spans_[next].weights);
    ++next;
  });
}

std::string HostParameters::not_finite() const {
  for (const Span& span : spans_) {
    if (!all_finite(span.weights, span.count)) return span.name;
  }
  return "";
}

std::vector<std::shared_ptr<void>> HostParameters::pin(Device& device) const {
  std::vector<std::shared_ptr<void>> pinned;
  for (const Buffer* memory : {&weights_, &gradients_})
    if (memory->bytes() > 0) pinned.push_back(device.pin(memory->data(), memory->bytes()));
  return pinned;
}

}  // namespace duplex
