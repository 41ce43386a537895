// The events of a training, for TensorBoard.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "tools/run_directory/rows.h"
#include "tools/tensorboard/event_file.h"

namespace duplex::tools {

/// Bytes of all frames that a rank of dist has sent and received so far.
struct WireBytes {
  std::uint64_t sent = 0, received = 0;
};

class TrainingEvents {
 public:
  /// Throws as EventFile does.
  TrainingEvents(const std::string& directory, bool resumes, Troubles& troubles)
      : file_(directory, resumes, troubles) {}

  void require_new() const { file_.require_new(); }  ///< See EventFile.
  /// Call it before the first step, `steps` of which were trained before. `batch`: images of a
  /// step. `wire`: what has crossed the wire until now; empty: there is none.
  void begin(std::uint64_t steps, std::int64_t batch, std::function<WireBytes()> wire = {});
  /// Call it after each step, with its row of metrics.csv, and after each test, with its row of
  /// accuracy.csv. The step of an event is how many there have been.
  void step(const StepMetrics& row);
  void test(const AccuracyRow& row);

 private:
  EventFile file_;
  double batch_ = 1.0;
  std::function<WireBytes()> wire_;
  WireBytes before_;  ///< Until the step before.
};

}  // namespace duplex::tools
