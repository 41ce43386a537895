// Runs a rank's part of a network that is cut, micro-batch by micro-batch.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/exchange.h"
#include "core/map_exchange.h"
#include "layers/model.h"
#include "layers/parts/part_layers.h"
#include "layers/parts/part_schedule.h"

namespace duplex {

/// A micro-batch as a rank needs it.
struct MicroBatch {
  const float* images = nullptr;         ///< Of the samples of NetworkPart, if it reads any.
  const std::int32_t* labels = nullptr;  ///< Of all samples; null: there are none (a replay).
  std::int64_t samples = 0;              ///< The number of labels.
  std::uint64_t first_sample = 0;        ///< Number of its first sample, over the whole training.
};

/// Follows a PartSchedule. A step ends with the mean of all micro-batches' gradients, whatever came
/// when.
class PartRunner {
 public:
  /// Adds a parameter's gradient, of micro-batch `number` of the step, to those before. Returns
  /// whether the last has come, and the mean of all is the parameter's gradient.
  using Add = std::function<bool(std::size_t parameter, std::uint64_t number)>;

  /// `micro_batches`: of a step. `slots`: one for each of them that may be here at a time.
  PartRunner(const Model& part, std::vector<std::unique_ptr<PartLayers>> slots,
             std::uint64_t micro_batches, std::uint64_t seed, Add add);

  std::uint64_t micro_batches() const { return schedule_.micro_batches(); }

  /// Gives the next micro-batch; what it gave before is not read any more.
  using Source = std::function<MicroBatch()>;
  /// Calls begin(step), and all that belongs to a step, of `exchange`, with the numbers of the
  /// part's parameters. Returns the mean of the micro-batches' losses, as far as they are computed
  /// here.
  double run_step(std::uint64_t step, const Source& source, Exchange& exchange, MapExchange& maps);

 private:
  struct Slot {
    std::unique_ptr<PartLayers> layers;
    std::vector<std::int32_t> labels;
  };

  void run(const PartSchedule::Work& work, const Source& source, Exchange& exchange,
           MapExchange& maps);
  void admit(std::uint64_t number, const Source& source, MapExchange& maps);
  void run_forward(const PartSchedule::Work& work, Exchange& exchange);
  void run_backward(const PartSchedule::Work& work);
  void push_complete(Exchange& exchange);
  Slot& slot(std::uint64_t number) { return slots_[number % slots_.size()]; }
  std::uint64_t counted(std::uint64_t number) const {
    return step_ * schedule_.micro_batches() + number;
  }

  PartSchedule schedule_;
  const std::uint64_t seed_;
  const Add add_;
  std::vector<Slot> slots_;
  std::vector<std::vector<std::size_t>> parameters_;  ///< By layer: its trained parameters.
  std::vector<std::size_t> complete_;                 ///< Those whose gradients are to be pushed.
  // These belong to the step that runs.
  std::uint64_t step_ = 0;
  double loss_ = 0;
};

}  // namespace duplex
