#include "net/exchange/incoming_weights.h"

#include <algorithm>

namespace duplex::net {

IncomingWeights::IncomingWeights(const ShardMap& map, const std::vector<Span>& spans,
                                 std::uint64_t first_step, int rank,
                                 std::optional<std::uint64_t> last_of_others)
    : map_(map),
      spans_(spans),
      rank_(rank),
      first_step_(first_step),
      incoming_(map.chunks(), {first_step, Incoming::due}),
      remaining_(spans.size()) {
  for (std::size_t p = 0; p < spans.size(); ++p) {
    const bool trains = map.trains(rank, p);
    if (trains || last_of_others) remaining_[p] = map.first(p + 1) - map.first(p);
    for (std::size_t chunk = map.first(p); !trains && chunk < map.first(p + 1); ++chunk) {
      incoming_[chunk] = {last_of_others.value_or(first_step), Incoming::due};
      if (!last_of_others) incoming_[chunk].state = Incoming::none;
    }
  }
}

bool IncomingWeights::expect_after_gradient(std::size_t parameter, std::uint64_t step,
                                            std::size_t frames) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (remaining_[parameter] > 0) return false;
  for (std::size_t chunk = map_.first(parameter); chunk < map_.first(parameter + 1); ++chunk)
    incoming_[chunk] = {step, Incoming::due};
  remaining_[parameter] = map_.first(parameter + 1) - map_.first(parameter) + frames;
  return true;
}

void IncomingWeights::expect_more(std::size_t parameter, std::size_t frames) {
  const std::lock_guard<std::mutex> lock(mutex_);
  remaining_[parameter] += frames;
}

void IncomingWeights::expect_all(std::uint64_t step) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (std::size_t chunk = 0; chunk < incoming_.size(); ++chunk) {
    incoming_[chunk] = {step, Incoming::due};
    ++remaining_[map_[chunk].parameter];
  }
}

void IncomingWeights::expect_others_at(std::uint64_t step) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (std::size_t p = 0; p < spans_.size(); ++p)
    for (std::size_t chunk = map_.first(p); !map_.trains(rank_, p) && chunk < map_.first(p + 1);
         ++chunk)
      incoming_[chunk].step = step;
}

float* IncomingWeights::reserve(std::size_t chunk, std::uint64_t step) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (stopped_) return nullptr;
  Incoming& incoming = incoming_[chunk];
  if (incoming.state != Incoming::due || incoming.step != step) return nullptr;
  incoming.state = Incoming::receiving;
  return spans_[map_[chunk].parameter].weights + map_[chunk].offset;
}

void IncomingWeights::commit(std::size_t chunk) {
  const std::lock_guard<std::mutex> lock(mutex_);
  incoming_[chunk].state = Incoming::received;
  if (--remaining_[map_[chunk].parameter] == 0) changed_.notify_all();
}

void IncomingWeights::gradient_sent(std::size_t parameter) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (--remaining_[parameter] == 0) changed_.notify_all();
}

bool IncomingWeights::complete(std::size_t parameter) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return remaining_[parameter] == 0;
}

bool IncomingWeights::wait(std::size_t parameter, std::chrono::milliseconds at_most) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait_for(lock, at_most,
                    [&] { return woken_ || stopped_ || remaining_[parameter] == 0; });
  woken_ = false;
  return remaining_[parameter] == 0;
}

void IncomingWeights::wake() {
  const std::lock_guard<std::mutex> lock(mutex_);
  woken_ = true;
  changed_.notify_all();
}

void IncomingWeights::stop() {
  const std::lock_guard<std::mutex> lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

bool IncomingWeights::missing(std::size_t chunk) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return incoming_[chunk].state == Incoming::due || incoming_[chunk].state == Incoming::receiving;
}

std::uint64_t IncomingWeights::due_step(std::size_t chunk) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return incoming_[chunk].step;
}

std::optional<std::uint64_t> IncomingWeights::answered_steps() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::optional<std::uint64_t> answered;
  for (const Incoming& each : incoming_) {
    if (each.state == Incoming::none) continue;
    const bool misses = each.state != Incoming::received;
    if (misses && each.step == first_step_) return std::nullopt;
    const std::uint64_t steps = each.step - (misses ? 1 : 0);
    answered = std::min(answered.value_or(steps), steps);
  }
  return answered;
}

std::optional<std::uint64_t> IncomingWeights::step_here(std::size_t chunk) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const Incoming& incoming = incoming_[chunk];
  if (incoming.state == Incoming::received) return incoming.step;
  if (incoming.state != Incoming::due || incoming.step == first_step_) return std::nullopt;
  return incoming.step - 1;
}

}  // namespace duplex::net
