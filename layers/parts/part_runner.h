// Runs a rank's part of a network that is cut, micro-batch by micro-batch.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "core/exchange.h"
#include "core/map_exchange.h"
#include "layers/model.h"
#include "layers/parts/part_layers.h"

namespace duplex {

/// A micro-batch as a rank needs it.
struct MicroBatch {
  const float* images = nullptr;         ///< Of the samples of NetworkPart, if it reads any.
  const std::int32_t* labels = nullptr;  ///< Of all samples; null: there are none (a replay).
  std::int64_t samples = 0;              ///< The number of labels.
  std::uint64_t first_sample = 0;        ///< Number of its first sample, over the whole training.
};

/// A layer of a micro-batch runs as soon as what it needs has come: backward before forward, an
/// earlier micro-batch before a later one, and every layer takes the micro-batches in order. So a
/// pipeline runs one forward and one backward in turn when it has been filled (1F1B, Narayanan et
/// al. 2019), and is flushed at the end of every step: weights have no versions. A step ends with
/// the mean of all micro-batches' gradients, whatever came when.
class PartRunner {
 public:
  /// Adds a parameter's gradient, of micro-batch `number` of the step, to those before. Returns
  /// whether the last has come, and the mean of all is the parameter's gradient.
  using Add = std::function<bool(std::size_t parameter, std::uint64_t number)>;

  /// `micro_batches`: of a step. `slots`: one for each of them that may be here at a time.
  PartRunner(const Model& part, std::vector<std::unique_ptr<PartLayers>> slots,
             std::uint64_t micro_batches, std::uint64_t seed, Add add);

  std::uint64_t micro_batches() const { return micro_batches_; }

  /// Gives the next micro-batch; what it gave before is not read any more.
  using Source = std::function<MicroBatch()>;
  /// Calls begin(step), and all that belongs to a step, of `exchange`, with the numbers of the
  /// part's parameters. Returns the mean of the micro-batches' losses, as far as they are computed
  /// here.
  double run_step(std::uint64_t step, const Source& source, Exchange& exchange, MapExchange& maps);

 private:
  /// A micro-batch that is here.
  struct Flight {
    PartLayers* layers = nullptr;
    std::uint64_t number = 0;  ///< In its step.
    std::vector<std::int32_t> labels;
    std::size_t forward = 0;   ///< Layers whose forward has run.
    std::size_t backward = 0;  ///< Layers whose backward has not.
  };

  bool run_next(const Source& source, Exchange& exchange, MapExchange& maps);
  void admit(const Source& source, MapExchange& maps);
  bool have_arrived(const std::vector<MapMessage>& messages, std::uint64_t number,
                    const MapExchange& maps) const;
  void run_forward(Flight& flight, Exchange& exchange);
  void run_backward(Flight& flight, Exchange& exchange);
  std::size_t layers() const { return parameters_.size(); }
  std::uint64_t counted(std::uint64_t number) const { return step_ * micro_batches_ + number; }

  const std::uint64_t micro_batches_, seed_;
  const Add add_;
  std::vector<std::unique_ptr<PartLayers>> slots_;
  std::vector<std::vector<std::size_t>> parameters_;  ///< By layer: its trained parameters.
  /// By layer: what has to come before its forward, and before its backward.
  std::vector<std::vector<MapMessage>> before_forward_, before_backward_;
  // These belong to the step that runs.
  std::uint64_t step_ = 0, admitted_ = 0;
  std::deque<Flight> flights_;  ///< In order.
  double loss_ = 0;
};

}  // namespace duplex
