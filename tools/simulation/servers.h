// The owners of the weights in a simulated run: they do what net's stores do, without the numbers.
#pragma once
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "net/store/applied_steps.h"
#include "net/store/batch_pool.h"
#include "net/store/straggler_tally.h"
#include "tools/simulation/wire.h"

namespace duplex::tools::simulation {

class Servers {
 public:
  /// Called when a worker on its owner's rank has new weights of a chunk.
  using OwnWeights = std::function<void(int worker, std::size_t chunk)>;

  /// All arguments must outlive it; `recorder` may be null.
  Servers(const Spec& spec, const net::ShardMap& map, EventQueue& event_queue,
          Processors& processors, Wire& wire, Recorder* recorder, OwnWeights own_weights);

  void publish_initial();
  /// Like Store::reserve(): whether a gradient may come in, for which it then holds room.
  bool room(std::size_t chunk, int worker);
  void received(std::size_t chunk, int worker, std::uint64_t step);
  /// In an asynchronous run: weights leave for a worker as they are now.
  void read(std::size_t chunk, int worker);
  void done(int owner, int worker, bool lost);
  /// Handles an event: the owner has added or updated a chunk.
  void worked(std::size_t chunk);

  double last_update() const { return last_update_; }
  std::vector<net::Staleness> staleness() const { return staleness_.rows(); }
  /// Synchronous: for whom each rank that the recorder keeps waited as an owner, by rank.
  std::vector<std::vector<net::StragglerTime>> stragglers() const;

 private:
  struct Gradient {
    int worker = 0;
    std::uint64_t step = 0;
  };
  struct Slot {
    std::uint64_t step = 0;  ///< Synchronous: step of the published weights.
    std::size_t turn = 0;    ///< Synchronous: whose gradient is added next, of all that train it.
    enum { idle, adding, updating } work = idle;
    double since = 0.0;
    std::uint64_t updates = 0;
    std::deque<Gradient> waiting;  ///< Asynchronous: gradients here and not applied; the first is
                                   ///< being applied.
  };
  /// From `from` on, the steps that a worker counts are others'.
  struct Assigned {
    std::uint64_t from = 0;
    net::Lease lease;
  };
  enum Contribution : std::uint8_t { missing, placed, placed_early, here, here_early };

  bool asynchronous() const { return spec_.sync == net::Sync::none; }
  Contribution& contribution(std::size_t chunk, int worker) {
    return contributions_[chunk * workers_.size() + static_cast<std::size_t>(worker)];
  }
  std::uint64_t& seen(std::size_t chunk, int worker) {
    return seen_[chunk * workers_.size() + static_cast<std::size_t>(worker)];
  }
  /// The numbers of the workers that train with a chunk, ascending.
  const std::vector<int>& trainers(std::size_t chunk) const {
    const std::vector<int>* members = map_.members(map_[chunk].parameter);
    return members != nullptr ? *members : numbers_;  // Ranks of a cut network are all workers.
  }
  /// The worker whose gradient is added next; -1: all have been.
  int turn_of(std::size_t chunk) const {
    const std::vector<int>& all = trainers(chunk);
    return slots_[chunk].turn < all.size() ? all[slots_[chunk].turn] : -1;
  }
  double work(std::size_t chunk) const;
  void advance(std::size_t chunk);
  void start(std::size_t chunk, bool update);
  void added(std::size_t chunk);
  void updated(std::size_t chunk);
  void applied(std::size_t chunk);
  void publish(std::size_t chunk, std::uint64_t step, int worker, bool last = false);
  net::Coding coding_of(const net::Chunk& chunk, std::uint64_t step, int rank, bool last) const;
  void publish_to_all(std::size_t chunk, std::uint64_t step);
  void publish_last(int owner);
  void publish_last(int owner, int worker);
  void give_work();
  std::vector<net::StepRange> undone(int worker, const net::StepRange& steps) const;
  Gradient batch_of(const Gradient& gradient) const;
  void note(std::size_t chunk, bool update, int worker, std::uint64_t step, double from) const;

  const Spec& spec_;
  const net::ShardMap& map_;
  EventQueue& event_queue_;
  Processors& processors_;
  Wire& wire_;
  Recorder* recorder_;
  OwnWeights own_weights_;
  const std::vector<int> workers_;  ///< The workers' ranks.
  std::vector<int> numbers_;        ///< 0, 1, ...: as many as there are workers.
  const std::size_t head_start_;
  std::vector<Slot> slots_;                                    ///< By chunk.
  std::vector<std::unique_ptr<net::StragglerTally>> tallies_;  ///< By rank; null: it is not kept.
  std::vector<std::vector<std::size_t>> owned_;                ///< Chunks, by owner's rank.
  std::vector<Contribution> contributions_;  ///< Synchronous: by chunk and worker.
  std::vector<std::uint64_t> seen_;          ///< Asynchronous: updates read, by chunk and
                                             ///< worker.
  std::vector<std::size_t> early_room_;      ///< Free bytes, by rank.
  std::vector<std::size_t> updated_;         ///< Synchronous: chunks updated in this step, by
                                             ///< rank.
  std::vector<double> busy_until_;           ///< By rank: when its work ends; an owner works on
                                             ///< a chunk at a time.
  std::vector<std::vector<std::size_t>> answered_;  ///< Asynchronous: chunks applied in this step,
                                                    ///< by rank and worker.
  std::vector<std::vector<bool>> done_, lost_;      ///< By rank and worker.
  std::vector<std::uint64_t> steps_of_;             ///< Asynchronous: steps applied, by worker.

  // Asynchronous, with a central server.
  std::optional<net::BatchPool> pool_;
  bool over_ = false;
  std::vector<std::vector<net::AppliedSteps>> applied_;  ///< By chunk and worker.
  std::vector<std::optional<Assigned>> assigned_;        ///< By worker: its last lease.
  net::StalenessTally staleness_;
  double last_update_ = 0.0;
};

}  // namespace duplex::tools::simulation
