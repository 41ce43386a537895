// The line that a training shows while it runs.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "tools/display/hits.h"
#include "tools/display/progress.h"
#include "tools/plan/schedule.h"

namespace duplex::tools {

class ProgressLine {
 public:
  /// Loss and top-1 on a terminal are over so many batches, the last ones.
  static constexpr std::size_t recent_batches = 50;

  /// `first`: the step that begins this part of the training; `batch`: samples a step, for the
  /// rate.
  ProgressLine(const Schedule& schedule, std::uint64_t first, std::int64_t batch,
               const Display& display)
      : schedule_(schedule), first_(first), batch_(batch), display_(display), progress_(display) {}

  /// Call it after a step; `gone`: seconds since the first step began.
  void show(std::uint64_t step, const std::optional<double>& loss, const std::optional<Hits>& hits,
            double gone);
  /// Removes the line from a terminal until the next step, so that something else may be told.
  void clear() { progress_.clear(); }
  /// Ends the line on a terminal, where it stays.
  void finish() { progress_.finish(); }

 private:
  struct Outcome {
    std::optional<double> loss;
    std::optional<Hits> hits;
  };
  struct Moment {
    double done = 0.0, gone = 0.0;  ///< Steps and seconds.
  };
  void show_plain(std::uint64_t step, const std::optional<double>& loss, double gone);
  void show_bar(std::uint64_t step, double gone);
  double steps_a_second(const Moment& now);

  const Schedule schedule_;
  const std::uint64_t first_;
  const std::int64_t batch_;
  const Display display_;
  Progress progress_;
  std::deque<Outcome> recent_;  ///< Those of the last batches, on a terminal.
  std::deque<Moment> moments_;  ///< When the line was rewritten, in the last seconds.
};

}  // namespace duplex::tools
