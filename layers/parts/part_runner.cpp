#include "layers/parts/part_runner.h"

#include <algorithm>
#include <utility>

#include "layers/parts/crossing.h"

namespace duplex {

PartRunner::PartRunner(const Model& part, std::vector<std::unique_ptr<PartLayers>> slots,
                       std::uint64_t micro_batches, std::uint64_t seed, Add add)
    : micro_batches_(micro_batches), seed_(seed), add_(std::move(add)), slots_(std::move(slots)) {
  std::size_t parameters = 0;
  for (const Model::Entry& entry : part.nodes()) {
    std::vector<std::size_t>& own = parameters_.emplace_back();
    for (const ParameterSpec& spec : part.parameters(entry))
      if (spec.trained) own.push_back(parameters++);
    std::vector<MapMessage>& forward = before_forward_.emplace_back();
    std::vector<MapMessage>& backward = before_backward_.emplace_back();
    if (const auto* receive = dynamic_cast<const ReceiveLayer*>(entry.layer.get()))
      forward.push_back({receive->transfer(), false, 0});
    if (const auto* send = dynamic_cast<const SendLayer*>(entry.layer.get()))
      for (const SendLayer::Piece& piece : send->pieces())
        if (piece.gradient) backward.push_back({piece.transfer, true, 0});
  }
}

double PartRunner::run_step(std::uint64_t step, const Source& source, Exchange& exchange,
                            MapExchange& maps) {
  step_ = step;
  admitted_ = 0;
  loss_ = 0;
  exchange.begin(step);
  while (admitted_ < micro_batches_ || !flights_.empty()) {
    const std::uint64_t known = maps.arrivals();
    if (run_next(source, exchange, maps))
      maps.progress();
    else
      maps.wait_for_more(known);
  }
  for (const auto& slot : slots_) slot->synchronize();
  exchange.end();
  return loss_ / static_cast<double>(micro_batches_);
}

/// Runs one layer, or admits a micro-batch. Returns false if nothing can run.
bool PartRunner::run_next(const Source& source, Exchange& exchange, MapExchange& maps) {
  for (std::size_t i = 0; i < flights_.size(); ++i) {
    Flight& flight = flights_[i];
    if (flight.forward < layers() || (i > 0 && flights_[i - 1].backward >= flight.backward) ||
        !have_arrived(before_backward_[flight.backward - 1], flight.number, maps))
      continue;
    run_backward(flight, exchange);
    if (flight.backward == 0) {  // It is the first: all before it have left.
      loss_ += flight.layers->loss();
      flights_.pop_front();
    }
    return true;
  }
  for (std::size_t i = 0; i < flights_.size(); ++i) {
    Flight& flight = flights_[i];
    if (flight.forward == layers() || (i > 0 && flights_[i - 1].forward <= flight.forward) ||
        !have_arrived(before_forward_[flight.forward], flight.number, maps))
      continue;
    run_forward(flight, exchange);
    return true;
  }
  if (admitted_ == micro_batches_ || flights_.size() == slots_.size()) return false;
  admit(source, maps);
  return true;
}

void PartRunner::admit(const Source& source, MapExchange& maps) {
  Flight& flight = flights_.emplace_back();
  flight.number = admitted_++;
  flight.layers = slots_[flight.number % slots_.size()].get();
  flight.backward = layers();
  const MicroBatch batch = source();
  if (batch.labels != nullptr) flight.labels.assign(batch.labels, batch.labels + batch.samples);
  ForwardContext context;
  context.seed = seed_;
  context.first_sample = batch.first_sample;
  context.labels = flight.labels.data();
  context.maps = &maps;
  context.micro_batch = counted(flight.number);
  flight.layers->begin(batch.images, context);
}

bool PartRunner::have_arrived(const std::vector<MapMessage>& messages, std::uint64_t number,
                              const MapExchange& maps) const {
  return std::all_of(messages.begin(), messages.end(), [&](const MapMessage& message) {
    return maps.arrived({message.transfer, message.gradient, counted(number)});
  });
}

void PartRunner::run_forward(Flight& flight, Exchange& exchange) {
  const std::size_t layer = flight.forward++;
  // The step's weights stay as they are for all of its micro-batches.
  if (flight.number == 0)
    for (const std::size_t p : parameters_[layer]) exchange.await(p);
  flight.layers->forward(layer);
  if (flight.forward == layers()) flight.layers->begin_backward();
}

void PartRunner::run_backward(Flight& flight, Exchange& exchange) {
  const std::size_t layer = --flight.backward;
  flight.layers->backward(layer);
  for (const std::size_t p : parameters_[layer])
    if (add_(p, flight.number)) exchange.push(p);
}

}  // namespace duplex
