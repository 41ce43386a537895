// The line that a training shows while it runs.
#pragma once
#include <cstdint>
#include <optional>

#include "tools/plan/schedule.h"
#include "tools/text/progress.h"

namespace duplex::tools {

class ProgressLine {
 public:
  /// `batch`: samples a step, for the rate. Without `show` nothing is shown.
  ProgressLine(const Schedule& schedule, std::int64_t batch, bool show)
      : schedule_(schedule), batch_(batch), show_(show) {}

  /// Call it after a step; `gone`: seconds since the training began.
  void show(std::uint64_t step, const std::optional<double>& loss, double gone);

 private:
  const Schedule schedule_;
  const std::int64_t batch_;
  const bool show_;
  Progress progress_;
};

}  // namespace duplex::tools
