// The line that a training shows while it runs.
#pragma once
#include <cstdint>
#include <optional>

#include "tools/plan/schedule.h"
#include "tools/text/progress.h"

namespace duplex::tools {

class ProgressLine {
 public:
  /// `first`: the step that begins this part of the training; `batch`: samples a step, for the
  /// rate. Without `show` nothing is shown.
  ProgressLine(const Schedule& schedule, std::uint64_t first, std::int64_t batch, bool show)
      : schedule_(schedule), first_(first), batch_(batch), show_(show) {}

  /// Call it after a step; `gone`: seconds since the first step began.
  void show(std::uint64_t step, const std::optional<double>& loss, double gone);

 private:
  const Schedule schedule_;
  const std::uint64_t first_;
  const std::int64_t batch_;
  const bool show_;
  Progress progress_;
};

}  // namespace duplex::tools
