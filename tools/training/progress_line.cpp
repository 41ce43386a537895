#include "tools/training/progress_line.h"

#include <string>

#include "tools/text/table.h"

namespace duplex::tools {

void ProgressLine::show(std::uint64_t step, const std::optional<double>& loss, double gone) {
  if (!show_ || !progress_.due()) return;
  const auto done = static_cast<double>(step + 1 - first_);
  const auto left = static_cast<double>(schedule_.steps - step - 1);
  progress_.show("epoch " + std::to_string(schedule_.epoch_of(step) + 1) + ", batch " +
                 std::to_string(step + 1) + "/" + std::to_string(schedule_.steps) +
                 (loss ? ", loss " + fixed(*loss, 4) : "") + ", " +
                 fixed(done * static_cast<double>(batch_) / gone, 1) + " images/s, " +
                 clock_text(gone / done * left) + " left");
}

}  // namespace duplex::tools
