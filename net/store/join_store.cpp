// The life of a chunk in one step, with three workers, of which worker 1 is on this rank:
//
//   worker 0   reserve() .. bytes arrive .. commit() --> add 0
//   worker 1   submit() .. waits for its turn .............. --> add 1
//   worker 2   reserve() .. commit() .. is early: waits for its turn .. --> add 2, update, publish
//   senders    read the published weights .. sent() .. before the update
//
// "publish" hands the weights of the next step to everybody. Gradients come in any order and are
// added in the order of the workers, so that a sum has the same bits every time. The thread whose
// commit(), submit() or sent() makes the next of these possible does it.
#include "net/store/join_store.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "core/clock.h"
#include "core/error.h"
#include "core/mapped_memory.h"

namespace duplex::net {

JoinStore::JoinStore(const ShardMap& map, int rank, const StoreSpec& spec,
                     const std::vector<float*>& weights, Publish publish)
    : map_(map),
      spec_(spec),
      publish_(std::move(publish)),
      slots_(map.chunks()),
      pool_(map.longest_of(rank)) {
  for (const std::int64_t factor : spec_.mean.factors(spec_.workers))
    factor_.push_back(static_cast<float>(factor));
  part_ = 1.0F / static_cast<float>(spec_.mean.total(spec_.workers));
  const int states = spec_.average ? 0 : spec_.optimiser.states();
  state_ = map_memory(map_.elements_of(rank) * static_cast<std::size_t>(states) * sizeof(float));
  auto* state = static_cast<float*>(state_.data());
  gradients_.resize(static_cast<std::size_t>(spec_.workers), 0);
  for (std::size_t i = 0; i < map_.chunks(); ++i) {
    const Chunk& chunk = map_[i];
    if (chunk.owner != rank || (spec_.leaves && spec_.leaves(chunk.parameter))) continue;
    ++owned_;
    auto slot = std::make_unique<Slot>(chunk, weights[chunk.parameter] + chunk.offset);
    // Only where every rank is a worker may some train with a part of the network.
    for (int worker = 0; worker < spec_.workers; ++worker)
      if (map_.trains(worker, chunk.parameter)) slot->workers.push_back(worker);
    for (const int worker : slot->workers) ++gradients_[static_cast<std::size_t>(worker)];
    slot->contributions.resize(slot->workers.size());
    for (int each = 0; each < states; ++each) {
      slot->state.push_back(state);
      state += chunk.count;
    }
    slot->step = spec_.first_step;
    slot->readers = readers_of(*slot);
    if (spec_.initial_state) spec_.initial_state(i, slot->state);
    slots_[i] = std::move(slot);
  }
  tally_.emplace(gradients_);
}

void JoinStore::publish_initial() {
  for (const auto& slot : slots_)
    if (slot) publish_({slot->chunk.index, spec_.first_step, every_worker, slot->weights});
}

int JoinStore::readers_of(const Slot& slot) const {
  // All workers but those that do not train with it, of which this rank's own is none.
  return spec_.readers - (spec_.workers - static_cast<int>(slot.workers.size()));
}

bool JoinStore::leaves_rank(const Slot& slot) const {
  return std::any_of(slot.workers.begin(), slot.workers.end(),
                     [this](int worker) { return worker != spec_.own; });
}

/// Returns the number of workers where it is none of them.
std::size_t JoinStore::place_of(const Slot& slot, int worker) {
  const auto place = std::lower_bound(slot.workers.begin(), slot.workers.end(), worker);
  return place != slot.workers.end() && *place == worker
             ? static_cast<std::size_t>(place - slot.workers.begin())
             : slot.workers.size();
}

/// Throws ProtocolError if the gradient is not due.
JoinStore::Begun JoinStore::begin_contribution(std::size_t chunk, int worker,
                                               std::uint64_t step) const {
  const auto refuse = [&](const std::string& why) {
    return refused_gradient(map_[chunk], worker, step, why);
  };
  if (!slots_[chunk]) throw refuse("this rank does not own the chunk");
  Slot& slot = *slots_[chunk];
  const std::size_t place = place_of(slot, worker);
  if (place == slot.workers.size()) throw refuse("it does not train with the layer");
  const std::lock_guard<std::mutex> lock(slot.mutex);
  if (step != slot.step) throw refuse("step " + std::to_string(slot.step) + " is due");
  if (slot.held) throw refuse("the weights that it should be of have not been sent");
  Contribution& contribution = slot.contributions[place];
  if (contribution.state != Contribution::missing) throw refuse("it has come already");
  contribution.state = Contribution::receiving;
  if (!slot.open) {
    slot.open = true;
    slot.since = Clock::now();
  }
  return {slot, place};
}

/// A gradient whose turn it is never waits for room, so the sums always proceed: the first worker's
/// turn comes with the step, and any other's when those before it have been added.
float* JoinStore::reserve(std::size_t chunk, int worker, std::uint64_t step, Time deadline) {
  const Begun begun = begin_contribution(chunk, worker, step);
  Slot& slot = begun.slot;
  tally_->begins(worker, clock_ns());
  std::optional<std::size_t> early_bytes = 0;
  if (slot.turn != begun.place) early_bytes = wait_for_room(begun, deadline);
  if (!early_bytes) return nullptr;
  BufferPool::Buffer buffer = pool_.take(slot.chunk.count);
  const std::lock_guard<std::mutex> lock(slot.mutex);
  Contribution& contribution = slot.contributions[begun.place];
  contribution.own = std::move(buffer);
  contribution.early_bytes = *early_bytes;
  return contribution.own->data;
}

/// Returns how many bytes of room the gradient takes up, which is none when its turn has come. None
/// are returned after stop(), and when the deadline has passed.
std::optional<std::size_t> JoinStore::wait_for_room(const Begun& begun, Time deadline) {
  const std::size_t bytes = begun.slot.chunk.bytes();
  std::unique_lock<std::mutex> room(room_mutex_);
  bool asked = false, expired = false;
  while (!stopped_) {
    if (begun.slot.turn == begun.place) return 0;
    if (early_used_ + bytes <= spec_.early_bytes) {
      early_used_ += bytes;
      return bytes;
    }
    if (expired) break;
    if (!asked && spec_.on_wait) {
      room.unlock();  // It takes locks of its own.
      spec_.on_wait(begun.slot.workers[begun.place]);
      room.lock();
      asked = true;
    } else if (room_.wait_until(room, deadline) == std::cv_status::timeout) {
      room.unlock();  // So does this.
      if (spec_.later) deadline = spec_.later();
      expired = Clock::now() >= deadline;
      room.lock();
    }
  }
  return std::nullopt;
}

void JoinStore::commit(std::size_t chunk, int worker) {
  Slot& slot = *slots_[chunk];
  std::unique_lock<std::mutex> lock(slot.mutex);
  slot.contributions[place_of(slot, worker)].state = Contribution::ready;
  tally_->complete(worker, slot.step, clock_ns());
  advance(slot, std::move(lock));
}

void JoinStore::submit(std::size_t chunk, int worker, std::uint64_t step, const float* gradient) {
  const Begun begun = begin_contribution(chunk, worker, step);
  Slot& slot = begun.slot;
  std::unique_lock<std::mutex> lock(slot.mutex);
  Contribution& contribution = slot.contributions[begun.place];
  contribution.borrowed = gradient;
  contribution.state = Contribution::ready;
  tally_->complete(worker, step, clock_ns());
  advance(slot, std::move(lock));
}

void JoinStore::read(std::size_t chunk, int, float* to) {
  std::copy_n(slots_[chunk]->weights, map_[chunk].count, to);
}

void JoinStore::sent(std::size_t chunk) {
  if (!slots_[chunk]) return;
  Slot& slot = *slots_[chunk];
  std::unique_lock<std::mutex> lock(slot.mutex);
  if (--slot.readers == 0) advance(slot, std::move(lock));
}

/// Does all that can be done now: adds the gradients whose turn it is, updates and publishes when
/// all are in. One thread at a time does so; another that comes meanwhile leaves its work to that
/// one. `lock` is the slot's.
void JoinStore::advance(Slot& slot, std::unique_lock<std::mutex> lock) {
  if (slot.busy) return;
  slot.busy = true;
  while (slot.turn < slot.workers.size()) {
    Contribution& next = slot.contributions[slot.turn];
    if (next.state != Contribution::ready) break;
    lock.unlock();
    add(slot, next);
    ++slot.turn;
    {
      const std::lock_guard<std::mutex> room(room_mutex_);
      early_used_ -= next.early_bytes;
      room_.notify_all();
    }
    lock.lock();
  }
  if (slot.turn < slot.workers.size() || slot.readers > 0) {
    slot.busy = false;
    return;
  }
  lock.unlock();
  update_weights(slot);
  lock.lock();
  for (Contribution& contribution : slot.contributions) contribution = Contribution();
  slot.turn = 0;
  slot.readers = readers_of(slot);
  slot.open = false;
  const std::uint64_t step = ++slot.step;
  slot.held = true;
  slot.busy = false;
  lock.unlock();
  publish(slot, step);
}

void JoinStore::publish(Slot& updated, std::uint64_t step) {
  if (!spec_.publish_together) return publish_one(updated, step);
  {
    const std::lock_guard<std::mutex> lock(together_mutex_);
    if (++updated_ < owned_) return;
    updated_ = 0;
  }
  for (const auto& slot : slots_)
    if (slot) publish_one(*slot, step);
}

void JoinStore::publish_one(Slot& slot, std::uint64_t step) {
  {
    const std::lock_guard<std::mutex> lock(slot.mutex);
    slot.held = false;
  }
  Publication publication{slot.chunk.index, step, every_worker, slot.weights};
  if (slot.packed_bytes > 0) {
    publication.packed = slot.packed.data();
    publication.packed_bytes = slot.packed_bytes;
  }
  publish_(publication);
}

/// Computes sum += factor * contribution. The result goes into whichever of the two is a buffer of
/// the store's own. After the last contribution the sum is made the mean (3.12); an only one is it.
void JoinStore::add(Slot& slot, Contribution& contribution) {
  const std::size_t count = slot.chunk.count;
  const std::size_t place = slot.turn;
  const auto factor = [&](std::size_t of) {
    return factor_[static_cast<std::size_t>(slot.workers[of])];
  };
  StoreWork work{StoreWork::add, slot.chunk.index, slot.step, slot.workers[place], clock_ns()};
  if (place == 0) {
    slot.sum = std::move(contribution.own);
    slot.borrowed_sum = contribution.borrowed;
  } else {
    if (!slot.sum && !contribution.own) slot.sum = pool_.take(count);
    const float* a = slot.borrowed_sum != nullptr ? slot.borrowed_sum : slot.sum->data;
    const float* b = contribution.own ? contribution.own->data : contribution.borrowed;
    float* to = slot.sum ? slot.sum->data : contribution.own->data;
    const float first = place == 1 ? factor(0) : 1.0F;
    const float second = factor(place);
    if (place + 1 < slot.workers.size()) {
      for (std::size_t i = 0; i < count; ++i) to[i] = a[i] * first + b[i] * second;
    } else {
      for (std::size_t i = 0; i < count; ++i) to[i] = (a[i] * first + b[i] * second) * part_;
    }
    if (!slot.sum) slot.sum = std::move(contribution.own);
    if (contribution.own) pool_.give_back(std::move(contribution.own));
    slot.borrowed_sum = nullptr;
  }
  work.to = clock_ns();
  if (spec_.on_work) spec_.on_work(work);
}

void JoinStore::update_weights(Slot& slot) {
  StoreWork work{StoreWork::update, slot.chunk.index, slot.step, slot.workers.back(), clock_ns()};
  if (spec_.keeps_before) {
    if (!slot.before) slot.before.emplace();
    copy_state(slot, *slot.before);
  }
  const float* gradient = slot.borrowed_sum != nullptr ? slot.borrowed_sum : slot.sum->data;
  BufferPool::Buffer published;  // The weights that the workers have.
  const bool packs = spec_.packs && leaves_rank(slot);
  if (packs) {
    published = pool_.take(slot.chunk.count);
    std::copy_n(slot.weights, slot.chunk.count, published->data);
  }
  if (spec_.average) {
    std::copy_n(gradient, slot.chunk.count, slot.weights);
  } else {
    const OptimiserStep step{spec_.optimiser, spec_.rate.at(slot.step), slot.step + 1};
    update(step, slot.chunk.count, slot.weights, gradient, slot.state.data());
  }
  if (packs) {
    slot.packed.resize(coded_bytes(Coding::lossless, slot.chunk.count) + coding_slack);
    slot.packed_bytes =
        encode_weights(slot.weights, published->data, slot.chunk.count, slot.packed.data());
    if (slot.packed_bytes >= slot.chunk.bytes()) slot.packed_bytes = 0;  // They go as they are.
    pool_.give_back(std::move(published));
  }
  if (slot.sum) pool_.give_back(std::move(slot.sum));
  slot.borrowed_sum = nullptr;
  work.to = clock_ns();
  if (spec_.on_work) spec_.on_work(work);
}

std::unique_lock<std::mutex> JoinStore::idle(const Slot& slot) {
  std::unique_lock<std::mutex> lock(slot.mutex);
  while (slot.busy) {
    lock.unlock();
    std::this_thread::yield();
    lock.lock();
  }
  return lock;
}

std::uint64_t JoinStore::step_of(std::size_t chunk) const {
  const auto lock = idle(*slots_[chunk]);
  return slots_[chunk]->step;
}

std::optional<ChunkState> JoinStore::state(std::size_t chunk, std::uint64_t step) const {
  const Slot& slot = *slots_[chunk];
  const auto lock = idle(slot);
  if (slot.before && slot.before->step == step) return slot.before;
  if (slot.step != step) return std::nullopt;
  std::optional<ChunkState> copy(std::in_place);
  copy_state(slot, *copy);
  return copy;
}

/// Reuses the memory of `to`.
void JoinStore::copy_state(const Slot& slot, ChunkState& to) {
  const std::size_t count = slot.chunk.count;
  to.step = slot.step;
  to.weights.assign(slot.weights, slot.weights + count);
  to.optimiser.resize(slot.state.size());
  for (std::size_t i = 0; i < slot.state.size(); ++i)
    to.optimiser[i].assign(slot.state[i], slot.state[i] + count);
}

std::optional<std::uint64_t> JoinStore::common_step(int worker) const {
  std::optional<std::uint64_t> common;
  for (const std::unique_ptr<Slot>& slot : slots_) {
    if (!slot) continue;
    const std::size_t place = place_of(*slot, worker);
    if (place == slot->workers.size()) continue;
    const std::lock_guard<std::mutex> lock(slot->mutex);
    const auto state = slot->contributions[place].state;
    if (state != Contribution::missing || slot->held) return std::nullopt;
    if (common.value_or(slot->step) != slot->step) return std::nullopt;
    common = slot->step;
  }
  return common;
}

void JoinStore::stop() {
  const std::lock_guard<std::mutex> lock(room_mutex_);
  stopped_ = true;
  room_.notify_all();
}

std::optional<Store::Overdue> JoinStore::overdue(Clock::duration allowed) const {
  const auto now = Clock::now();
  std::optional<Overdue> worst;
  auto since = now - allowed;
  for (std::size_t chunk = 0; chunk < slots_.size(); ++chunk) {
    if (!slots_[chunk]) continue;
    const Slot& slot = *slots_[chunk];
    const std::lock_guard<std::mutex> lock(slot.mutex);
    if (!slot.open || slot.since > since) continue;
    Overdue found{chunk, slot.step, {}, std::chrono::duration<double>(now - slot.since).count()};
    for (std::size_t place = 0; place < slot.contributions.size(); ++place) {
      const auto state = slot.contributions[place].state;
      if (state == Contribution::missing || state == Contribution::receiving)
        found.missing.push_back(slot.workers[place]);
    }
    if (found.missing.empty()) continue;
    since = slot.since;
    worst = std::move(found);
  }
  return worst;
}

}  // namespace duplex::net
