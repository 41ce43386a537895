// The ranks that train in a simulated run: they run the training loop in virtual time.
#pragma once
#include <cstdint>
#include <deque>
#include <vector>

#include "tools/simulation/factors.h"
#include "tools/simulation/servers.h"

namespace duplex::tools::simulation {

class Workers {
 public:
  /// There are no workers where Spec::cut is set. All arguments must outlive it; `recorder` may be
  /// null.
  Workers(const Spec& spec, const net::ShardMap& map, EventQueue& event_queue,
          Processors& processors, Wire& wire, Recorder* recorder);
  /// Sets the servers that get gradients of chunks on the worker's own rank, and what exchanges
  /// factors. Call it before begin().
  void serve_by(Servers& servers, Factors& factors) {
    servers_ = &servers;
    factors_ = &factors;
  }

  void begin();
  /// Handles an event: the worker has computed, or may go on.
  void go_on(int number);
  /// The slots of the worker have added up their gradients of a parameter.
  void summed(int number);
  void weights_here(int number, std::size_t chunk);
  /// The worker's own copy of a factored layer is of the next step.
  void layer_here(int number, std::size_t layer);
  /// So many batches of lost workers are given to a worker that has told that it is done; 0: there
  /// are no more, and the last weights follow.
  void leased(int number, std::uint64_t batches);
  void lose(int number);

  bool all_ended() const { return ended_ == workers_.size(); }
  const std::vector<StepTimes>& steps(std::size_t worker) const { return workers_[worker].steps; }

 private:
  enum class Phase {
    begin,     ///< A step begins.
    await,     ///< Without overlap: it awaits all weights.
    forward,   ///< It is at `layer`.
    backward,  ///< It has computed all layers from `layer` on.
    sums,      ///< It awaits the sums of its slots' gradients.
    finish,    ///< Its last step is over; it awaits the last weights.
    idle,      ///< Asynchronous, with a central server: it awaits batches of lost workers.
    part,      ///< Asynchronous: it awaits the owners' last weights.
    ended,
  };
  struct Worker {
    int rank = 0;
    Phase phase = Phase::begin;
    std::uint64_t step = 0;
    std::uint64_t leased = 0;  ///< Batches of lost workers that it trains beside its own.
    std::size_t layer = 0;
    double sealing_factor = 1.0;         ///< By which sealing makes computing take longer.
    double slowdown = 1.0;               ///< The same with what a straggler's step takes longer.
    std::vector<std::uint32_t> missing;  ///< Chunks whose weights are awaited, by parameter.
    std::size_t all_missing = 0;
    bool waits = false;
    std::size_t awaited = 0;  ///< Parameter that it waits for; `all`: every one.
    double waits_since = 0.0;
    std::deque<std::size_t> sums;  ///< Parameters whose gradients its slots add up.
    double sums_until = 0.0;       ///< When the last of them will be done.
    StepTimes times;
    std::vector<StepTimes> steps;
  };

  static constexpr std::size_t all = ~std::size_t{0};
  bool awaits(const Worker& worker) const;
  bool pushes(const Worker& worker) const;
  std::uint64_t round(const Worker& worker) const;
  double sealing_factor(int rank, double part) const;
  std::uint64_t awaited_step(const Worker& worker) const;
  void begin_step(Worker& worker);
  void compute_until(int number, double time);
  bool owes(int number);
  bool forward(int number);
  bool backward(int number);
  void end_step(Worker& worker);
  bool has(const Worker& worker, std::size_t parameter) const;
  bool await(Worker& worker, std::size_t parameter);
  double summing(std::size_t number, std::size_t parameter) const;
  void push(int number, std::size_t parameter);
  void push_sum(int number, std::size_t parameter);
  void part(int number);
  void expect_all(Worker& worker);
  void note(const Worker& worker, net::TraceEvent::Kind kind, std::size_t what, double from,
            double to, std::uint32_t chunk = 0) const;

  const Spec& spec_;
  const net::ShardMap& map_;
  EventQueue& event_queue_;
  Processors& processors_;
  Wire& wire_;
  Recorder* recorder_;
  Servers* servers_ = nullptr;
  Factors* factors_ = nullptr;
  std::vector<Worker> workers_;
  std::size_t ended_ = 0;
};

}  // namespace duplex::tools::simulation
