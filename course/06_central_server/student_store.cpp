// Puts the student's central server in the place of the program's own: build/course/
// 06_central_server.duplex is the program, linked with this make_store().
#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "core/error.h"
#include "course/06_central_server/central_server.h"
#include "net/store/store.h"

namespace duplex::course {
namespace {

/// A synchronous store for a rank that owns weights and does not train.
class StudentStore final : public net::Store {
 public:
  StudentStore(const net::ShardMap& map, int rank, const net::StoreSpec& spec,
               const std::vector<float*>& weights, Publish publish)
      : map_(map), spec_(spec), publish_(std::move(publish)), slots_(map.chunks()) {
    for (std::size_t i = 0; i < map_.chunks(); ++i)
      if (map_[i].owner == rank) {
        slots_[i] = std::make_unique<Slot>(map_[i], weights[map_[i].parameter] + map_[i].offset,
                                           spec_.workers);
        slots_[i]->step = spec_.first_step;
        slots_[i]->readers = spec_.readers;
        ++owned_;
      }
  }

  void publish_initial() override { publish_all(); }

  float* reserve(std::size_t chunk, int worker, std::uint64_t step, Time) override {
    Slot& slot = *slots_[chunk];
    const std::lock_guard<std::mutex> lock(slot.mutex);
    if (step != slot.step)
      throw net::refused_gradient(map_[chunk], worker, step,
                                  "step " + std::to_string(slot.step) + " is due");
    return slot.incoming[static_cast<std::size_t>(worker)].data();
  }

  void commit(std::size_t chunk, int worker) override {
    Slot& slot = *slots_[chunk];
    std::unique_lock<std::mutex> lock(slot.mutex);
    const float* gradient = slot.incoming[static_cast<std::size_t>(worker)].data();
    slot.missing = exercise::collect(slot.tensor, worker, gradient);
    if (slot.missing < 0)
      throw net::refused_gradient(map_[chunk], worker, slot.step, "collect() says it is there");
    advance(slot, std::move(lock));
  }

  void submit(std::size_t, int, std::uint64_t, const float*) override {
    throw Error("this store is for a rank that does not train: --server central");
  }

  void read(std::size_t chunk, int, float* to) override {
    std::copy_n(slots_[chunk]->tensor.weights, map_[chunk].count, to);
  }

  void sent(std::size_t chunk) override {
    if (!slots_[chunk]) return;
    Slot& slot = *slots_[chunk];
    std::unique_lock<std::mutex> lock(slot.mutex);
    --slot.readers;
    advance(slot, std::move(lock));
  }

  bool done(int, bool) override { return false; }
  bool answered(int worker) const override { return common_step(worker).has_value(); }
  bool owes_nothing(int worker) const override { return answered(worker); }

  std::optional<std::uint64_t> common_step(int worker) const override {
    std::optional<std::uint64_t> common;
    for (const auto& slot : slots_) {
      if (!slot) continue;
      const std::lock_guard<std::mutex> lock(slot->mutex);
      if (slot->held || slot->collected[static_cast<std::size_t>(worker)] != 0) return {};
      if (common.value_or(slot->step) != slot->step) return {};
      common = slot->step;
    }
    return common;
  }

  std::uint64_t step_of(std::size_t chunk) const override {
    const std::lock_guard<std::mutex> lock(slots_[chunk]->mutex);
    return slots_[chunk]->step;
  }

  std::optional<net::ChunkState> state(std::size_t chunk, std::uint64_t step) const override {
    const Slot& slot = *slots_[chunk];
    const std::lock_guard<std::mutex> lock(slot.mutex);
    if (slot.step != step) return {};
    const float* weights = slot.tensor.weights;
    return net::ChunkState{step, {weights, weights + slot.mean.size()}, {}, {}};
  }

  void stop() override {}
  std::optional<Overdue> overdue(Clock::duration) const override { return {}; }

 private:
  struct Slot {
    Slot(const net::Chunk& chunk, float* weights, int workers)
        : index(chunk.index),
          incoming(static_cast<std::size_t>(workers), std::vector<float>(chunk.count)),
          gradients(static_cast<std::size_t>(workers) * chunk.count),
          mean(chunk.count),
          collected(static_cast<std::size_t>(workers)),
          tensor{static_cast<std::int32_t>(chunk.count), workers, weights, gradients.data(),
                 collected.data()},
          missing(workers) {}

    const std::size_t index;
    mutable std::mutex mutex;  ///< Guards all below; no other lock is taken meanwhile.
    std::vector<std::vector<float>> incoming;  ///< By worker: what connections receive into.
    std::vector<float> gradients, mean;
    std::vector<std::int32_t> collected;
    exercise::Tensor tensor;
    std::uint64_t step = 0;
    std::int32_t missing;
    int readers = 0;    ///< Readers of the published weights that have not called sent().
    bool held = false;  ///< The weights are new and not published yet.
  };

  /// Updates and publishes when all gradients are in and nobody reads the weights any more. `lock`
  /// is the slot's.
  void advance(Slot& slot, std::unique_lock<std::mutex> lock) {
    if (slot.missing > 0 || slot.readers > 0) return;
    exercise::average(slot.tensor, slot.mean.data());
    exercise::publish(slot.tensor, slot.mean.data(), static_cast<float>(spec_.rate.at(slot.step)));
    slot.missing = spec_.workers;
    slot.readers = spec_.readers;
    slot.held = true;
    ++slot.step;
    lock.unlock();
    if (!spec_.publish_together) return publish_one(slot);
    {
      const std::lock_guard<std::mutex> together(together_mutex_);
      if (++updated_ < owned_) return;
      updated_ = 0;
    }
    publish_all();
  }

  void publish_all() {
    for (const auto& slot : slots_)
      if (slot) publish_one(*slot);
  }

  void publish_one(Slot& slot) {
    std::uint64_t step = 0;
    {
      const std::lock_guard<std::mutex> lock(slot.mutex);
      slot.held = false;
      step = slot.step;
    }
    publish_({slot.index, step, every_worker, slot.tensor.weights});
  }

  const net::ShardMap& map_;
  const net::StoreSpec spec_;
  const Publish publish_;
  std::vector<std::unique_ptr<Slot>> slots_;  ///< By chunk; null where another rank owns it.
  std::size_t owned_ = 0;                     ///< This rank owns so many chunks.
  std::mutex together_mutex_;  ///< Guards updated_. Any thread takes it, as its only lock.
  std::size_t updated_ = 0;    ///< With publish_together: chunks that wait for the others.
};

}  // namespace
}  // namespace duplex::course

namespace duplex::net {

std::unique_ptr<Store> make_store(const ShardMap& map, int rank, const StoreSpec& spec,
                                  const std::vector<float*>& weights, Store::Publish publish) {
  if (spec.sync != Sync::join || spec.own >= 0 || spec.average || spec.optimiser.states() > 0 ||
      spec.optimiser.weight_decay != 0.0F)
    throw Error(
        "exercise 6: a student's server does --sync join --server central, and --optimizer sgd "
        "without momentum and weight decay",
        Exit::usage);
  return std::make_unique<course::StudentStore>(map, rank, spec, weights, std::move(publish));
}

}  // namespace duplex::net
