// The order in which a rank runs the layers of its part, micro-batch by micro-batch.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "layers/model.h"

namespace duplex {

/// A layer of a micro-batch runs as soon as what it needs has come: backward before forward, an
/// earlier micro-batch before a later one, and every layer takes the micro-batches in order. So a
/// pipeline runs one forward and one backward in turn when it has been filled (1F1B, Narayanan et
/// al. 2019), and is flushed at the end of every step: weights have no versions. Training and
/// simulation ask the same schedule.
class PartSchedule {
 public:
  struct Work {
    enum Kind { admit, forward, backward };
    Kind kind = admit;         ///< admit: the micro-batch begins; it computes nothing by that.
    std::uint64_t number = 0;  ///< Of the micro-batch, in its step.
    std::size_t layer = 0;     ///< A node of the part.
  };
  /// Says whether a map, or the gradient of one, has come for micro-batch `number` of the step.
  using Arrived = std::function<bool(std::size_t transfer, bool gradient, std::uint64_t number)>;

  /// `micro_batches`: of a step. `in_flight`: the most that may be here at a time.
  PartSchedule(const Model& part, std::uint64_t micro_batches, std::uint64_t in_flight);

  std::uint64_t micro_batches() const { return micro_batches_; }
  std::size_t layers() const { return before_forward_.size(); }

  /// Begins the next step, when done().
  void begin() { admitted_ = 0; }
  /// Returns what is to be run now; it counts as done from then on. None: maps have to come first,
  /// or the step is done.
  std::optional<Work> next(const Arrived& arrived);
  /// Whether gradients that are complete wait until this has run: it computes nothing, and may be
  /// what lets a map leave, for which another rank waits. A frame that has begun holds up those
  /// behind it.
  bool comes_before_gradients(const Work& work) const {
    return work.kind == Work::backward && returns_maps_[work.layer];
  }
  /// Says that all of the step's micro-batches are through.
  bool done() const { return admitted_ == micro_batches_ && flights_.empty(); }

 private:
  /// A micro-batch that is here.
  struct Flight {
    std::uint64_t number = 0;
    std::size_t forward = 0;   ///< Layers whose forward has run.
    std::size_t backward = 0;  ///< Layers whose backward has not.
  };

  std::optional<Work> next_backward(const Arrived& arrived);
  std::optional<Work> next_forward(const Arrived& arrived);

  std::uint64_t micro_batches_, in_flight_;
  /// By layer: the transfers that have to come before its forward, and whose gradients have to come
  /// before its backward.
  std::vector<std::vector<std::size_t>> before_forward_, before_backward_;
  std::vector<bool> returns_maps_;  ///< By layer: it receives maps, or puts them together.
  std::uint64_t admitted_ = 0;
  std::deque<Flight> flights_;  ///< In order.
};

}  // namespace duplex
