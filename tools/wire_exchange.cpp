#include "tools/wire_exchange.h"

#include <algorithm>

#include "layers/checkpoint.h"

namespace duplex::tools {

HostParameters::HostParameters(const Model& model, bool gradients) : specs_(model.trained()) {
  for (const ParameterSpec& spec : specs_) {
    const auto count = static_cast<std::size_t>(spec.shape.elements());
    weights_.emplace_back(count);
    gradients_.emplace_back(gradients ? count : 0);
    spans_.push_back(
        {spec.name, count, weights_.back().data(), gradients ? gradients_.back().data() : nullptr});
  }
}

void HostParameters::initialise(std::uint64_t seed) {
  for (std::size_t i = 0; i < specs_.size(); ++i) draw_initial(specs_[i], seed, weights_[i].data());
}

void HostParameters::load(const std::string& path, const Model& model) {
  std::size_t next = 0;
  read_checkpoint(path, model, [&](const ParameterSpec& spec, const float* values) {
    if (spec.trained) std::copy_n(values, spec.shape.elements(), weights_[next++].data());
  });
}

void WireExchange::await(std::size_t parameter) {
  wire_.await(parameter);
  network_.device().upload(network_.parameters()[parameter].weights,
                           host_.spans()[parameter].weights);
}

void WireExchange::push(std::size_t parameter) {
  network_.device().download(host_.spans()[parameter].gradient,
                             network_.parameters()[parameter].gradient);
  wire_.push(parameter);
}

void AveragingExchange::begin(std::uint64_t step) {
  step_ = step;
  if (first_of_round()) wire_.begin(step / every_);
  local_.begin(step);
}

void AveragingExchange::await(std::size_t parameter) {
  if (!first_of_round()) return;
  wire_.await(parameter);
  network_.device().upload(network_.parameters()[parameter].weights,
                           host_.spans()[parameter].weights);
}

void AveragingExchange::push(std::size_t parameter) {
  local_.push(parameter);
  if (!last_of_round()) return;
  // The mean is taken of what goes where gradients go otherwise.
  network_.device().download(host_.spans()[parameter].gradient,
                             network_.parameters()[parameter].weights);
  wire_.push(parameter);
}

void AveragingExchange::end() {
  local_.end();
  if (last_of_round()) wire_.end();
}

}  // namespace duplex::tools
