#include "net/store/async_store.h"

#include <algorithm>
#include <utility>

#include "core/clock.h"
#include "core/error.h"
#include "core/mapped_memory.h"

namespace duplex::net {

AsyncStore::AsyncStore(const ShardMap& map, int rank, const StoreSpec& spec,
                       const std::vector<float*>& weights, Publish publish)
    : map_(map),
      spec_(spec),
      publish_(std::move(publish)),
      slots_(map.chunks()),
      receive_buffers_(static_cast<std::size_t>(spec.workers)),
      applied_(receive_buffers_.size()),
      done_(receive_buffers_.size()),
      lost_(receive_buffers_.size()),
      last_(receive_buffers_.size()),
      assigned_(receive_buffers_.size()),
      staleness_(spec.workers) {
  const auto arrays = 1 + static_cast<std::size_t>(spec_.optimiser.states());
  memory_ = map_memory(map_.elements_of(rank) * arrays * sizeof(float));
  auto* next = static_cast<float*>(memory_.data());
  for (std::size_t index = 0; index < map_.chunks(); ++index) {
    const Chunk& chunk = map_[index];
    if (chunk.owner != rank) continue;
    ++owned_;
    auto slot = std::make_unique<Slot>();
    slot->count = chunk.count;
    slot->weights = next;
    std::copy_n(weights[chunk.parameter] + chunk.offset, chunk.count, next);
    next += chunk.count;
    for (std::size_t each = 1; each < arrays; ++each) {
      slot->state.push_back(next);
      next += chunk.count;
    }
    if (spec_.initial_state) spec_.initial_state(index, slot->state);
    slot->due = spec_.first_steps;
    slot->due.resize(receive_buffers_.size());
    slot->seen.resize(receive_buffers_.size());
    slot->given.resize(receive_buffers_.size());
    if (index < spec_.records.size()) {
      slot->updates = spec_.records[index].updates;
      slot->applied = std::move(spec_.records[index].applied);
    }
    slot->applied.resize(receive_buffers_.size());
    slots_[index] = std::move(slot);
  }
  spec_.records.clear();
  for (const Staleness& entry : spec_.staleness_before) staleness_.add(entry);
  spec_.staleness_before.clear();
}

void AsyncStore::publish_initial() {
  for (std::size_t chunk = 0; chunk < slots_.size(); ++chunk) {
    if (!slots_[chunk]) continue;
    for (int worker = 0; worker < spec_.workers; ++worker) {
      const auto index = static_cast<std::size_t>(worker);
      publish_({chunk, index < spec_.first_steps.size() ? spec_.first_steps[index] : 0, worker});
    }
  }
}

AsyncStore::Slot& AsyncStore::due(std::size_t chunk, int worker, std::uint64_t step) const {
  const auto refuse = [&](const std::string& why) {
    return refused_gradient(map_[chunk], worker, step, why);
  };
  if (!slots_[chunk]) throw refuse("this rank does not own the chunk");
  {
    const std::lock_guard<std::mutex> lock(done_mutex_);
    if (done_[static_cast<std::size_t>(worker)]) throw refuse("it has ended its training");
  }
  Slot& slot = *slots_[chunk];
  const std::lock_guard<std::mutex> lock(slot.mutex);
  std::uint64_t& expected = slot.due[static_cast<std::size_t>(worker)];
  if (step < expected) throw refuse("it has come already");
  if (step > expected) throw refuse("step " + std::to_string(expected) + " is due");
  if (!slot.given[static_cast<std::size_t>(worker)])
    throw refuse("the weights that it should be of have not been sent");
  slot.given[static_cast<std::size_t>(worker)] = false;
  ++expected;
  return slot;
}

float* AsyncStore::reserve(std::size_t chunk, int worker, std::uint64_t step, Time) {
  due(chunk, worker, step);
  ReceiveBuffer& received = receive_buffers_[static_cast<std::size_t>(worker)];
  received.step = step;
  if (received.buffer.size() < map_[chunk].count) received.buffer.resize(map_[chunk].count);
  return received.buffer.data();
}

void AsyncStore::commit(std::size_t chunk, int worker) {
  const ReceiveBuffer& received = receive_buffers_[static_cast<std::size_t>(worker)];
  apply(chunk, worker, received.step, received.buffer.data());
}

void AsyncStore::submit(std::size_t chunk, int worker, std::uint64_t step, const float* gradient) {
  due(chunk, worker, step);
  apply(chunk, worker, step, gradient);
}

void AsyncStore::apply(std::size_t chunk, int worker, std::uint64_t step, const float* gradient) {
  Slot& slot = *slots_[chunk];
  std::uint64_t behind = 0;
  StoreWork work{StoreWork::update, chunk, step, worker};
  const Batch batch = batch_of(worker, step);
  bool known = false;  // By a checkpoint, or by a worker that is lost.
  {
    const std::lock_guard<std::mutex> lock(slot.mutex);
    AppliedSteps& applied = slot.applied[static_cast<std::size_t>(batch.worker)];
    known = applied.has(batch.step);
    if (!known) {
      applied.add(batch.step);
      behind = slot.updates - slot.seen[static_cast<std::size_t>(worker)];
      work.from = clock_ns();
      update({spec_.optimiser, spec_.rate.at(batch.step), ++slot.updates}, slot.count, slot.weights,
             gradient, slot.state.data());
      work.to = clock_ns();
    }
  }
  if (!known && spec_.on_work) spec_.on_work(work);
  if (!known) note(batch.worker, batch.step, behind);
  answer(chunk, worker, step);
}

/// The calls for one worker come from one thread, so what is counted by worker needs no lock.
void AsyncStore::answer(std::size_t chunk, int worker, std::uint64_t step) {
  if (!spec_.publish_together) {
    publish_({chunk, step + 1, worker});
    return;
  }
  std::size_t& applied = applied_[static_cast<std::size_t>(worker)];
  if (++applied < owned_) return;
  applied = 0;
  for (std::size_t each = 0; each < slots_.size(); ++each)
    if (slots_[each]) publish_({each, step + 1, worker});
}

void AsyncStore::read(std::size_t chunk, int worker, float* to) {
  Slot& slot = *slots_[chunk];
  const std::lock_guard<std::mutex> lock(slot.mutex);
  slot.seen[static_cast<std::size_t>(worker)] = slot.updates;
  slot.given[static_cast<std::size_t>(worker)] = true;
  std::copy_n(slot.weights, slot.count, to);
}

std::uint64_t AsyncStore::step_of(std::size_t chunk) const {
  Slot& slot = *slots_[chunk];
  const std::lock_guard<std::mutex> lock(slot.mutex);
  return slot.updates;
}

std::optional<ChunkState> AsyncStore::state(std::size_t chunk, std::uint64_t) const {
  Slot& slot = *slots_[chunk];
  const std::lock_guard<std::mutex> lock(slot.mutex);
  ChunkState state;
  state.step = slot.updates;
  state.weights.assign(slot.weights, slot.weights + slot.count);
  for (const float* values : slot.state) state.optimiser.emplace_back(values, values + slot.count);
  state.applied = slot.applied;
  return state;
}

bool AsyncStore::has_all(int worker) const {
  return std::all_of(slots_.begin(), slots_.end(), [&](const std::unique_ptr<Slot>& slot) {
    if (!slot) return true;
    const std::lock_guard<std::mutex> lock(slot->mutex);
    return bool{slot->given[static_cast<std::size_t>(worker)]};
  });
}

bool AsyncStore::answered(int worker) const {
  {
    const std::lock_guard<std::mutex> lock(done_mutex_);
    if (done_[static_cast<std::size_t>(worker)]) return true;
  }
  return has_all(worker);
}

bool AsyncStore::owes_nothing(int worker) const {
  {
    const std::lock_guard<std::mutex> lock(done_mutex_);
    if (!last_[static_cast<std::size_t>(worker)]) return false;
  }
  return has_all(worker);
}

/// The calls for one worker come from one thread, but for the one that tells that it is lost.
bool AsyncStore::done(int worker, bool lost) {
  const auto index = static_cast<std::size_t>(worker);
  const bool has = lost || has_all(worker);
  const std::lock_guard<std::mutex> lock(done_mutex_);
  if (done_[index] && !lost) throw ProtocolError("it has ended its training already");
  if (!has) throw ProtocolError("it has not had the weights that answer its gradients");
  lost_[index] = lost_[index] || lost;
  done_[index] = true;
  return std::count(done_.begin(), done_.end(), true) == spec_.workers;
}

void AsyncStore::publish_last() {
  for (int each = 0; each < spec_.workers; ++each)
    if (each != spec_.own) publish_last(each);
  if (spec_.own >= 0) publish_last(spec_.own);
}

/// The step whose gradients a worker pushes next. Not while gradients of it are being received.
std::uint64_t AsyncStore::due_step(int worker) const {
  for (const auto& slot : slots_) {
    if (!slot) continue;
    const std::lock_guard<std::mutex> lock(slot->mutex);
    return slot->due[static_cast<std::size_t>(worker)];
  }
  return 0;
}

void AsyncStore::assign(int worker, const Lease& lease) {
  const Assigned assigned{due_step(worker), lease};
  const std::lock_guard<std::mutex> lock(done_mutex_);
  assigned_[static_cast<std::size_t>(worker)] = assigned;
  done_[static_cast<std::size_t>(worker)] = false;
}

AsyncStore::Batch AsyncStore::batch_of(int worker, std::uint64_t step) const {
  const std::lock_guard<std::mutex> lock(done_mutex_);
  const std::optional<Assigned>& assigned = assigned_[static_cast<std::size_t>(worker)];
  if (!assigned || step < assigned->from) return {worker, step};
  return {assigned->lease.worker, assigned->lease.steps.first + (step - assigned->from)};
}

void AsyncStore::begin_again(int worker, std::uint64_t step) {
  const auto index = static_cast<std::size_t>(worker);
  {
    const std::lock_guard<std::mutex> lock(done_mutex_);
    done_[index] = lost_[index] = last_[index] = false;
    assigned_[index].reset();
  }
  applied_[index] = 0;
  for (const auto& slot : slots_) {
    if (!slot) continue;
    const std::lock_guard<std::mutex> lock(slot->mutex);
    slot->due[index] = step;
    slot->given[index] = false;
  }
  for (std::size_t chunk = 0; chunk < slots_.size(); ++chunk)
    if (slots_[chunk]) publish_({chunk, step, worker});
}

std::vector<StepRange> AsyncStore::undone(int worker, const StepRange& steps) const {
  const auto index = static_cast<std::size_t>(worker);
  std::vector<AppliedSteps> applied;
  for (const auto& slot : slots_) {
    if (!slot) continue;
    const std::lock_guard<std::mutex> lock(slot->mutex);
    applied.push_back(slot->applied[index]);
  }
  return missing_of(applied, steps);
}

void AsyncStore::publish_last(int worker) {
  const auto index = static_cast<std::size_t>(worker);
  std::vector<std::uint64_t> due(slots_.size());
  for (std::size_t chunk = 0; chunk < slots_.size(); ++chunk) {
    if (!slots_[chunk]) continue;
    const std::lock_guard<std::mutex> lock(slots_[chunk]->mutex);
    due[chunk] = slots_[chunk]->due[index];
    slots_[chunk]->given[index] = false;
  }
  {
    const std::lock_guard<std::mutex> lock(done_mutex_);
    if (lost_[index]) return;
    last_[index] = true;
  }
  for (std::size_t chunk = 0; chunk < slots_.size(); ++chunk)
    if (slots_[chunk]) publish_({chunk, due[chunk] + 1, worker, nullptr, nullptr, 0, true});
}

void AsyncStore::note(int worker, std::uint64_t step, std::uint64_t behind) {
  const std::lock_guard<std::mutex> lock(staleness_mutex_);
  staleness_.add(worker, step, behind);
}

std::vector<Staleness> AsyncStore::staleness() const {
  const std::lock_guard<std::mutex> lock(staleness_mutex_);
  return staleness_.rows();
}

}  // namespace duplex::net
