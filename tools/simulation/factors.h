// The factors of linear layers in a simulated run: every rank sends its own to all others, and
// updates its own copies (net/factors/factor_store.h).
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "tools/simulation/event_queue.h"
#include "tools/simulation/processors.h"
#include "tools/simulation/recorder.h"
#include "tools/simulation/spec.h"
#include "tools/simulation/wire.h"

namespace duplex::tools::simulation {

/// Returns the bytes of the frames in which a worker sends its factors of a step to one other.
double factor_bytes(const Spec& spec, int worker);
/// Returns the bytes of the frames of factors that a worker sends and receives in a step.
double factor_bytes_of(const Spec& spec, int worker);

class Factors {
 public:
  /// `updated` is called when a worker's copy of a layer is of the next step. All arguments must
  /// outlive it; `recorder` may be null. Without Spec::factors there are no layers.
  Factors(const Spec& spec, const net::ShardMap& map, EventQueue& event_queue,
          Processors& processors, Wire& wire, Recorder* recorder,
          std::function<void(int worker, std::size_t layer)> updated);

  /// The worker's own factors of a layer are ready.
  void push(int worker, std::size_t layer, std::uint64_t step);
  void received(int from, int to, const net::FrameHeader& header);
  /// Handles an event: a worker has updated a layer.
  void worked(int worker);
  /// Returns when the last update was done.
  double last_update() const { return last_; }

 private:
  struct Layer {
    std::uint64_t step = 0;
    std::size_t missing[2] = {0, 0};  ///< Pieces, by the parity of the step.
  };
  struct Worker {
    std::vector<Layer> layers;
    std::size_t updating = none;  ///< A layer.
    double since = 0.0;           ///< When that began.
  };
  static constexpr std::size_t none = ~std::size_t{0};

  void came(int worker, std::size_t layer, std::uint64_t step, std::size_t pieces);
  void advance(int number);
  void send_last_weights(int rank, const net::FactoredLayer& layer);
  std::size_t pieces(std::size_t layer) const;

  const Spec& spec_;
  const net::ShardMap& map_;
  EventQueue& event_queue_;
  Processors& processors_;
  Wire& wire_;
  Recorder* recorder_;
  const std::function<void(int worker, std::size_t layer)> updated_;
  std::vector<Worker> workers_;
  double last_ = 0.0;
};

}  // namespace duplex::tools::simulation
