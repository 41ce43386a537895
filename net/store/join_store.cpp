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
#include <functional>
#include <thread>
#include <utility>

#include "core/clock.h"
#include "core/error.h"

namespace duplex::net {
namespace {

std::size_t longest_of(const ShardMap& map, int rank) {
  std::size_t longest = 0;
  for (std::size_t i = 0; i < map.chunks(); ++i)
    if (map[i].owner == rank) longest = std::max(longest, map[i].count);
  return longest;
}

std::vector<float*> pointers_to(const std::vector<std::unique_ptr<float[]>>& arrays) {
  std::vector<float*> pointers;
  for (const std::unique_ptr<float[]>& array : arrays) pointers.push_back(array.get());
  return pointers;
}

/// Does `work` and reports it to on_work, if there is one.
template <class Work>
void told(const StoreSpec& spec, StoreWork what, Work&& work) {
  if (!spec.on_work) {
    work();
    return;
  }
  what.from = clock_ns();
  work();
  what.to = clock_ns();
  spec.on_work(what);
}

}  // namespace

JoinStore::JoinStore(const ShardMap& map, int rank, const StoreSpec& spec,
                     std::vector<float*> weights, Publish publish)
    : map_(map),
      spec_(spec),
      weights_(std::move(weights)),
      publish_(std::move(publish)),
      slots_(map.chunks()),
      pool_(longest_of(map, rank)) {
  std::int64_t samples = 0;
  const bool same = std::adjacent_find(spec_.samples.begin(), spec_.samples.end(),
                                       std::not_equal_to<>()) == spec_.samples.end();
  for (std::size_t worker = 0; worker < static_cast<std::size_t>(spec_.workers); ++worker) {
    const std::int64_t own = same ? 1 : spec_.samples[worker];
    factor_.push_back(static_cast<float>(own));
    samples += own;
  }
  part_ = 1.0F / static_cast<float>(samples);
  for (std::size_t chunk = 0; chunk < map_.chunks(); ++chunk) {
    if (map_[chunk].owner != rank) continue;
    ++owned_;
    auto slot = std::make_unique<Slot>();
    slot->contributions.resize(static_cast<std::size_t>(spec_.workers));
    for (int i = 0; i < (spec_.average ? 0 : spec_.optimiser.states()); ++i)
      slot->state.emplace_back(new float[map_[chunk].count]());
    slot->step = spec_.first_step;
    if (spec_.initial_state) spec_.initial_state(chunk, pointers_to(slot->state));
    slots_[chunk] = std::move(slot);
  }
  tally_.emplace(spec_.workers, owned_);
}

void JoinStore::publish_initial() {
  for (std::size_t chunk = 0; chunk < slots_.size(); ++chunk)
    if (slots_[chunk]) publish_one(chunk, spec_.first_step);
}

JoinStore::Slot& JoinStore::due(std::size_t chunk, int worker, std::uint64_t step) const {
  const auto refuse = [&](const std::string& why) {
    return refused_gradient(map_[chunk], worker, step, why);
  };
  if (!slots_[chunk]) throw refuse("this rank does not own the chunk");
  Slot& slot = *slots_[chunk];
  const std::lock_guard<std::mutex> lock(slot.mutex);
  if (step != slot.step) throw refuse("step " + std::to_string(slot.step) + " is due");
  Contribution& contribution = slot.contributions[static_cast<std::size_t>(worker)];
  if (contribution.state != Contribution::missing) throw refuse("it has come already");
  contribution.state = Contribution::arriving;
  if (!slot.open) {
    slot.open = true;
    slot.since = Clock::now();
  }
  return slot;
}

bool JoinStore::is_turn(const Slot& slot, int worker) {
  const std::lock_guard<std::mutex> lock(slot.mutex);
  return slot.turn == worker;
}

float* JoinStore::reserve(std::size_t chunk, int worker, std::uint64_t step,
                          Clock::time_point deadline) {
  Slot& slot = due(chunk, worker, step);
  tally_->begins(worker, clock_ns());
  const std::size_t bytes = map_[chunk].bytes();
  bool early = false;
  if (!is_turn(slot, worker)) {
    // A gradient whose turn it is never waits for room, so the sums always proceed: worker 0's turn
    // comes with the step, and worker i's when those before it have been added.
    std::unique_lock<std::mutex> room(room_mutex_);
    bool asked = false;
    while (!stopped_ && !is_turn(slot, worker)) {
      if (early_used_ + bytes <= spec_.early_bytes) {
        early_used_ += bytes;
        early = true;
        break;
      }
      if (!asked && spec_.on_wait) {
        room.unlock();  // It takes locks of its own.
        spec_.on_wait(worker);
        room.lock();
        asked = true;
        continue;
      }
      if (room_.wait_until(room, deadline) == std::cv_status::no_timeout) continue;
      if (spec_.later) deadline = spec_.later();
      if (Clock::now() >= deadline) return nullptr;
    }
    if (stopped_) return nullptr;
  }
  BufferPool::Buffer buffer = pool_.take(map_[chunk].count);
  const std::lock_guard<std::mutex> lock(slot.mutex);
  Contribution& contribution = slot.contributions[static_cast<std::size_t>(worker)];
  contribution.own = std::move(buffer);
  contribution.early = early;
  return contribution.own.get();
}

void JoinStore::commit(std::size_t chunk, int worker) {
  Slot& slot = *slots_[chunk];
  std::uint64_t step = 0;
  {
    const std::lock_guard<std::mutex> lock(slot.mutex);
    slot.contributions[static_cast<std::size_t>(worker)].state = Contribution::here;
    step = slot.step;
  }
  tally_->complete(worker, step, clock_ns());
  advance(chunk);
}

void JoinStore::submit(std::size_t chunk, int worker, std::uint64_t step, const float* gradient) {
  Slot& slot = due(chunk, worker, step);
  {
    const std::lock_guard<std::mutex> lock(slot.mutex);
    Contribution& contribution = slot.contributions[static_cast<std::size_t>(worker)];
    contribution.borrowed = gradient;
    contribution.state = Contribution::here;
  }
  tally_->complete(worker, step, clock_ns());
  advance(chunk);
}

void JoinStore::read(std::size_t chunk, int, float* to) {
  std::copy_n(weights_of(map_[chunk]), map_[chunk].count, to);
}

void JoinStore::sent(std::size_t chunk) {
  Slot& slot = *slots_[chunk];
  {
    const std::lock_guard<std::mutex> lock(slot.mutex);
    if (--slot.readers > 0) return;
  }
  advance(chunk);
}

/// Does all that can be done now: adds the gradients whose turn it is, updates and publishes when
/// all are in. One thread at a time does so; another that comes meanwhile leaves its work to that
/// one.
void JoinStore::advance(std::size_t chunk) {
  Slot& slot = *slots_[chunk];
  std::unique_lock<std::mutex> lock(slot.mutex);
  if (slot.busy) return;
  slot.busy = true;
  while (slot.turn < spec_.workers) {
    Contribution& contribution = slot.contributions[static_cast<std::size_t>(slot.turn)];
    if (contribution.state != Contribution::here) break;
    lock.unlock();
    told(spec_, {StoreWork::add, chunk, slot.step, slot.turn},
         [&] { add(map_[chunk].count, slot, contribution); });
    const std::size_t freed = contribution.early ? map_[chunk].bytes() : 0;
    lock.lock();
    ++slot.turn;
    lock.unlock();
    turn_has_come(freed);
    lock.lock();
  }
  if (slot.turn < spec_.workers || slot.readers > 0) {
    slot.busy = false;
    return;
  }
  lock.unlock();
  told(spec_, {StoreWork::update, chunk, slot.step, spec_.workers - 1},
       [&] { update_weights(map_[chunk], slot); });
  lock.lock();
  for (Contribution& contribution : slot.contributions) contribution = Contribution();
  slot.turn = 0;
  slot.open = false;
  const std::uint64_t step = ++slot.step;
  slot.busy = false;
  lock.unlock();
  publish(chunk, step);
}

void JoinStore::publish(std::size_t chunk, std::uint64_t step) {
  if (!spec_.publish_together) {
    publish_one(chunk, step);
    return;
  }
  {
    const std::lock_guard<std::mutex> lock(together_mutex_);
    if (++updated_ < owned_) return;
    updated_ = 0;
  }
  for (std::size_t each = 0; each < slots_.size(); ++each)
    if (slots_[each]) publish_one(each, step);
}

void JoinStore::publish_one(std::size_t chunk, std::uint64_t step) {
  {
    const std::lock_guard<std::mutex> lock(slots_[chunk]->mutex);
    slots_[chunk]->readers = spec_.readers;
  }
  publish_({chunk, step, every_worker, weights_of(map_[chunk])});
}

/// Computes sum += factor * contribution. The result goes into whichever of the two is a buffer of
/// the store's own. After the last contribution the sum is made the mean (3.12).
void JoinStore::add(std::size_t count, Slot& slot, Contribution& contribution) {
  if (slot.turn == 0) {
    slot.sum = std::move(contribution.own);
    slot.borrowed_sum = contribution.borrowed;
    return;
  }
  if (!slot.sum && !contribution.own) slot.sum = pool_.take(count);
  const float* a = slot.borrowed_sum != nullptr ? slot.borrowed_sum : slot.sum.get();
  const float* b = contribution.own ? contribution.own.get() : contribution.borrowed;
  float* to = slot.sum ? slot.sum.get() : contribution.own.get();
  const auto turn = static_cast<std::size_t>(slot.turn);
  const float first = turn == 1 ? factor_[0] : 1.0F, second = factor_[turn];
  if (slot.turn + 1 < spec_.workers) {
    for (std::size_t i = 0; i < count; ++i) to[i] = a[i] * first + b[i] * second;
  } else {
    for (std::size_t i = 0; i < count; ++i) to[i] = (a[i] * first + b[i] * second) * part_;
  }
  if (!slot.sum) slot.sum = std::move(contribution.own);
  if (contribution.own) pool_.give_back(std::move(contribution.own));
  slot.borrowed_sum = nullptr;
}

void JoinStore::update_weights(const Chunk& chunk, Slot& slot) {
  if (spec_.keeps_before) {
    if (!slot.before) slot.before.emplace();
    copy_state(chunk.index, slot, *slot.before);
  }
  const OptimiserStep step{spec_.optimiser, spec_.rate.at(slot.step), slot.step + 1};
  const std::vector<float*> state = pointers_to(slot.state);
  const float* gradient = slot.borrowed_sum != nullptr ? slot.borrowed_sum : slot.sum.get();
  float* weights = weights_of(chunk);
  if (spec_.average) {
    std::copy_n(gradient, chunk.count, weights);
  } else {
    update(step, chunk.count, weights, gradient, state.data());
  }
  if (slot.sum) pool_.give_back(std::move(slot.sum));
  slot.borrowed_sum = nullptr;
}

/// Wakes the threads that wait for room or for their turn.
void JoinStore::turn_has_come(std::size_t freed_bytes) {
  const std::lock_guard<std::mutex> lock(room_mutex_);
  early_used_ -= freed_bytes;
  room_.notify_all();
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
  copy_state(chunk, slot, *copy);
  return copy;
}

/// Reuses the memory of `to`.
void JoinStore::copy_state(std::size_t chunk, const Slot& slot, ChunkState& to) const {
  const std::size_t count = map_[chunk].count;
  to.step = slot.step;
  const float* weights = weights_of(map_[chunk]);
  to.weights.assign(weights, weights + count);
  to.optimiser.resize(slot.state.size());
  for (std::size_t i = 0; i < slot.state.size(); ++i)
    to.optimiser[i].assign(slot.state[i].get(), slot.state[i].get() + count);
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
    for (std::size_t worker = 0; worker < slot.contributions.size(); ++worker) {
      const auto state = slot.contributions[worker].state;
      if (state == Contribution::missing || state == Contribution::arriving)
        found.missing.push_back(static_cast<int>(worker));
    }
    if (found.missing.empty()) continue;
    since = slot.since;
    worst = std::move(found);
  }
  return worst;
}

}  // namespace duplex::net
