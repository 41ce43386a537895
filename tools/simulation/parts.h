// The ranks of a simulated run whose network is cut over them: they do what PartRunner does, in
// virtual time.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "tools/simulation/factors.h"
#include "tools/simulation/servers.h"

namespace duplex::tools::simulation {

class Parts {
 public:
  /// There are no ranks where Spec::cut is null. All arguments must outlive it; `recorder` may be
  /// null.
  Parts(const Spec& spec, const net::ShardMap& map, EventQueue& event_queue, Processors& processors,
        Wire& wire, Recorder* recorder);
  /// Sets the servers that get gradients of chunks on the rank's own rank, and what exchanges
  /// factors. Call it before begin().
  void serve_by(Servers& servers, Factors& factors) {
    servers_ = &servers;
    factors_ = &factors;
  }

  void begin();
  /// Handles an event: the rank has computed, or may go on.
  void go_on(int number);
  void weights_here(int number, std::size_t chunk);
  /// The rank's own copy of a factored layer is of the next step.
  void layer_here(int number, std::size_t layer);
  /// A part of a map, or of the gradient of one, has come.
  void map_here(int number, const net::FrameHeader& header);

  bool all_ended() const { return ended_ == ranks_.size(); }
  const std::vector<StepTimes>& steps(std::size_t rank) const { return ranks_[rank].steps; }

 private:
  enum class Phase {
    begin,    ///< A step begins.
    choose,   ///< It looks for what can be run.
    weights,  ///< It awaits the weights of a layer.
    compute,  ///< It computes a layer.
    finish,   ///< Its last step is over; it awaits the last weights.
    ended,
  };
  struct Rank {
    explicit Rank(PartSchedule of) : schedule(std::move(of)) {}

    PartSchedule schedule;
    Phase phase = Phase::begin;
    PartSchedule::Work work;  ///< What it computes, or awaits the weights of.
    std::uint64_t step = 0;
    double sealing_factor = 1.0;         ///< By which sealing makes computing take longer.
    double slowdown = 1.0;               ///< The same with what a straggler's step takes longer.
    std::vector<std::uint32_t> missing;  ///< Chunks whose weights are awaited, by parameter.
    std::size_t all_missing = 0;
    /// Chunks of the last weights of all others, which the coordinator awaits at the end.
    std::size_t others_missing = 0;
    std::vector<std::uint64_t> come;    ///< Messages that have come, by route: maps, gradients.
    std::vector<std::size_t> complete;  ///< Parameters whose gradients are to be pushed.
    std::optional<double> waits_since;
    double computes_until = 0.0;
    StepTimes times;
    std::vector<StepTimes> steps;
  };

  static std::size_t at(int number) { return static_cast<std::size_t>(number); }
  const PartLayer& layer(int number) const {
    return spec_.cut->parts[at(number)].layers[ranks_[at(number)].work.layer];
  }
  double sealing_factor(int number) const;
  void begin_step(int number);
  void end_step(Rank& rank);
  bool choose(int number);
  bool awaits_weights(int number) const;
  bool compute(int number);
  void computed(int number);
  void compute_until(int number, double time);
  bool owes(int number);
  void send(int number, std::size_t route, bool gradient);
  void push(int number, std::size_t parameter);
  void push_complete(int number);
  void wait(Rank& rank);
  void waited(int number);
  void note(int number, net::TraceEvent::Kind kind, std::uint32_t what, double from, double to,
            std::uint32_t chunk = 0, net::FrameKind frame = net::FrameKind::weights) const;
  void wake(int number);

  const Spec& spec_;
  const net::ShardMap& map_;
  EventQueue& event_queue_;
  Processors& processors_;
  Wire& wire_;
  Recorder* recorder_;
  Servers* servers_ = nullptr;
  Factors* factors_ = nullptr;
  std::vector<Rank> ranks_;
  std::size_t ended_ = 0;
};

}  // namespace duplex::tools::simulation
