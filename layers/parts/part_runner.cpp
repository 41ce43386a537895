#include "layers/parts/part_runner.h"

#include <utility>

namespace duplex {

PartRunner::PartRunner(const Model& part, std::vector<std::unique_ptr<PartLayers>> slots,
                       std::uint64_t micro_batches, std::uint64_t seed, Add add)
    : schedule_(part, micro_batches, slots.size()), seed_(seed), add_(std::move(add)) {
  for (auto& layers : slots) slots_.push_back({std::move(layers), {}});
  std::size_t parameters = 0;
  for (const Model::Entry& entry : part.nodes()) {
    std::vector<std::size_t>& own = parameters_.emplace_back();
    for (const ParameterSpec& spec : part.parameters(entry))
      if (spec.trained) own.push_back(parameters++);
  }
}

double PartRunner::run_step(std::uint64_t step, const Source& source, Exchange& exchange,
                            MapExchange& maps) {
  step_ = step;
  loss_ = 0;
  schedule_.begin();
  exchange.begin(step);
  const auto arrived = [&](std::size_t transfer, bool gradient, std::uint64_t number) {
    return maps.arrived({transfer, gradient, counted(number)});
  };
  while (!schedule_.done()) {
    const std::uint64_t known = maps.arrivals();
    const auto work = schedule_.next(arrived);
    if (!work || !schedule_.comes_before_gradients(*work)) push_complete(exchange);
    if (work) {
      run(*work, source, exchange, maps);
      maps.progress();
    } else {
      maps.wait_for_more(known);
    }
  }
  push_complete(exchange);
  for (const Slot& each : slots_) each.layers->synchronize();
  exchange.end();
  return loss_ / static_cast<double>(schedule_.micro_batches());
}

void PartRunner::run(const PartSchedule::Work& work, const Source& source, Exchange& exchange,
                     MapExchange& maps) {
  switch (work.kind) {
    case PartSchedule::Work::admit:
      return admit(work.number, source, maps);
    case PartSchedule::Work::forward:
      return run_forward(work, exchange);
    case PartSchedule::Work::backward:
      return run_backward(work);
  }
}

void PartRunner::admit(std::uint64_t number, const Source& source, MapExchange& maps) {
  Slot& its = slot(number);
  const MicroBatch batch = source();
  its.labels.clear();
  if (batch.labels != nullptr) its.labels.assign(batch.labels, batch.labels + batch.samples);
  ForwardContext context;
  context.seed = seed_;
  context.first_sample = batch.first_sample;
  context.labels = its.labels.data();
  context.maps = &maps;
  context.micro_batch = counted(number);
  its.layers->begin(batch.images, context);
}

void PartRunner::run_forward(const PartSchedule::Work& work, Exchange& exchange) {
  // The step's weights stay as they are for all of its micro-batches.
  if (work.number == 0)
    for (const std::size_t p : parameters_[work.layer]) exchange.await(p);
  PartLayers& layers = *slot(work.number).layers;
  layers.forward(work.layer);
  if (work.layer + 1 == schedule_.layers()) layers.begin_backward();
}

void PartRunner::run_backward(const PartSchedule::Work& work) {
  PartLayers& layers = *slot(work.number).layers;
  layers.backward(work.layer);
  for (const std::size_t p : parameters_[work.layer])
    if (add_(p, work.number)) complete_.push_back(p);
  if (work.layer == 0) loss_ += layers.loss();
}

void PartRunner::push_complete(Exchange& exchange) {
  for (const std::size_t p : complete_) exchange.push(p);
  complete_.clear();
}

}  // namespace duplex
