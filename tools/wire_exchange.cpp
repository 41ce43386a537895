#include "tools/wire_exchange.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/error.h"
#include "layers/checkpoint.h"

namespace duplex::tools {
namespace {

bool all_finite(const float* values, std::size_t count) {
  return std::all_of(values, values + count, [](float value) { return std::isfinite(value); });
}

}  // namespace

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
    // So that the first step finds its memory there, and one that computes nothing (replay) has it.
    std::memset(gradients_.data(), 0, gradients_.bytes());
  }
  std::size_t offset = 0;
  for (net::Span& span : spans_) {
    span.weights = static_cast<float*>(weights_.data()) + offset;
    if (gradients) span.gradient = static_cast<float*>(gradients_.data()) + offset;
    offset += span.count;
  }
}

net::Fingerprint HostParameters::fill(const Model& model, std::uint64_t seed,
                                      const std::string& path) {
  net::Sha256 sum;
  std::size_t next = 0;
  const auto take = [&](const ParameterSpec& spec, const float* values) {
    const auto count = static_cast<std::size_t>(spec.shape.elements());
    sum.add(spec.name + '\0');
    sum.add({reinterpret_cast<const char*>(values), count * sizeof(float)});
    if (!spec.trained) return;
    if (values != spans_[next].weights) std::copy_n(values, count, spans_[next].weights);
    ++next;
  };
  if (!path.empty()) {
    read_checkpoint(path, model, [&](const ParameterSpec& spec, const float* values) {
      if (!all_finite(values, static_cast<std::size_t>(spec.shape.elements())))
        throw Error(path + ": " + spec.name + " is not finite; train from another checkpoint");
      take(spec, values);
    });
    return {path, sum.digest()};
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
  return {"--seed " + std::to_string(seed), sum.digest()};
}

std::string HostParameters::not_finite() const {
  for (const net::Span& span : spans_) {
    if (!all_finite(span.weights, span.count)) return span.name;
  }
  return "";
}

std::vector<std::shared_ptr<void>> HostParameters::pin(Device& device) const {
  return {device.pin(weights_.data(), weights_.bytes()),
          device.pin(gradients_.data(), gradients_.bytes())};
}

Between::Between(Network& network, const HostParameters& host, net::ParameterExchange& wire)
    : network_(network), host_(host), wire_(wire), pinned_(host.pin(network.device())) {
  Device& device = network.device();
  if (!device.asynchronous()) return;
  // Once through all copies, so that what they need is allocated before the first step.
  for (std::size_t p = 0; p < host.spans().size(); ++p) {
    device.start_upload(network.parameters()[p].weights, host.spans()[p].weights);
    device.start_download(host.spans()[p].gradient, network.parameters()[p].gradient)->wait();
  }
  network.synchronize();
  device.copy_waits();
}

void Between::await(std::size_t parameter) {
  wire_.await(parameter);
  network_.device().start_upload(network_.parameters()[parameter].weights,
                                 host_.spans()[parameter].weights);
}

void Between::push(std::size_t parameter, const Tensor& values) {
  queue_.add(network_.device().start_download(host_.spans()[parameter].gradient, values),
             [this, parameter] { wire_.push(parameter); });
}

void Between::end() {
  queue_.wait();
  wire_.end();
}

void Between::await_all() {
  for (std::size_t p = 0; p < host_.spans().size(); ++p) await(p);
}

void AveragingExchange::begin(std::uint64_t step) {
  step_ = step;
  if (first_of_round()) between_.begin(step / every_);
  local_.begin(step);
}

void AveragingExchange::await(std::size_t parameter) {
  if (first_of_round()) between_.await(parameter);
}

void AveragingExchange::push(std::size_t parameter) {
  local_.push(parameter);
  if (!last_of_round()) return;
  // The mean is taken of what goes where gradients go otherwise.
  between_.push(parameter, network_.parameters()[parameter].weights);
}

void AveragingExchange::end() {
  local_.end();
  if (last_of_round()) between_.end();
}

}  // namespace duplex::tools
