#include "tools/training/network_computation.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "core/device.h"
#include "tools/training/divergence.h"

namespace duplex::tools {

BatchSource batches_of(datasets::BatchLoader& loader) {
  return {[&loader]() -> const datasets::Batch& { return loader.next(); },
          static_cast<std::size_t>(loader.shape().elements()) * sizeof(float), loader.rooms()};
}

NetworkComputation::NetworkComputation(Network& network, BatchSource source, std::uint64_t seed,
                                       std::function<bool(std::uint64_t step)> looks)
    : network_(network), source_(std::move(source)), seed_(seed), looks_(std::move(looks)) {
  for (const auto& room : source_.rooms)
    pinned_.push_back(network.device().pin(room.pixels, room.bytes));
}

NetworkComputation::~NetworkComputation() = default;

void NetworkComputation::next_batch() {
  if (copy_) copy_->wait();  // The source then takes back the batch before.
  batch_ = &source_.next();
  copy_ = network_.device().prefetch(batch_->pixels, source_.bytes);
}

void NetworkComputation::begin(std::uint64_t step) {
  if (batch_ == nullptr) next_batch();
  step_ = step;
  look_ = looks_(step);
}

void NetworkComputation::begin_forward() {
  if (look_) keeping_nan_.emplace(network_.device());
}

void NetworkComputation::end_forward() {
  keeping_nan_.reset();
  if (counts_hits_) hits_ = hits();  // Backward may put gradients in the outputs' place.
}

void NetworkComputation::forward(std::size_t layer) {
  if (layer == 0) {
    begin_forward();
    network_.begin_forward(batch_->pixels, context());
  }
  network_.forward_layer(layer);
}

void NetworkComputation::backward(std::size_t layer) {
  if (layer + 1 == layers()) {
    end_forward();
    network_.begin_backward();
  }
  network_.backward_layer(layer);
}

void NetworkComputation::forward_all() {
  begin_forward();
  network_.forward(batch_->pixels, context());
}

void NetworkComputation::backward_all() {
  end_forward();
  network_.backward();
}

void NetworkComputation::synchronize() {
  if (network_.device().asynchronous())
    next_batch();
  else
    batch_ = nullptr;
  network_.synchronize();
}

void NetworkComputation::count_hits() {
  const auto kind = network_.model().entry(network_.model().output()).layer->loss_kind();
  counts_hits_ = kind && !network_.device().asynchronous();
}

Hits NetworkComputation::hits() const {
  const auto classes = static_cast<std::size_t>(network_.model().classes());
  std::vector<float> logits(static_cast<std::size_t>(network_.batch()) * classes);
  network_.logits(logits.data());
  Hits hits;
  for (std::size_t i = 0; i < logits.size(); i += classes, ++hits.samples) {
    const float* const own = logits.data() + i;
    const auto greatest = std::max_element(own, own + classes) - own;
    hits.right += greatest == batch_->labels[hits.samples] ? 1U : 0U;
  }
  return hits;
}

StepOutcome NetworkComputation::outcome() {
  StepOutcome outcome;
  outcome.loss = network_.loss();
  if (look_ && std::isfinite(*outcome.loss))
    require_finite(network_, "step " + std::to_string(step_));
  if (counts_hits_) outcome.hits = hits_;
  if (network_.device().asynchronous()) outcome.waits = network_.device().copy_waits();
  return outcome;
}

}  // namespace duplex::tools
