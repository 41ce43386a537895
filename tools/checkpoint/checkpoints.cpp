#include "tools/checkpoint/checkpoints.h"

#include <csignal>
#include <utility>

#include "core/clock.h"
#include "core/error.h"
#include "tools/checkpoint/stop_signals.h"
#include "tools/text/say.h"

namespace duplex::tools {

CheckpointClock::CheckpointClock(CheckpointPlan plan, std::uint64_t first)
    : plan_(plan), last_(first), made_(clock_ns()) {}

bool CheckpointClock::due(std::uint64_t steps) const {
  if (plan_.steps != 0 && steps / plan_.steps > last_ / plan_.steps) return true;
  return plan_.seconds > 0.0 && seconds(clock_ns() - made_) >= plan_.seconds;
}

void CheckpointClock::made(std::uint64_t steps) {
  last_ = steps;
  made_ = clock_ns();
}

CheckpointWriter::CheckpointWriter(CheckpointFiles files, CheckpointPlan plan, std::uint64_t first,
                                   std::vector<StateArray> arrays, Troubles& troubles,
                                   CheckpointFiles::Metadata more)
    : files_(std::move(files)),
      clock_(plan, first),
      arrays_(std::move(arrays)),
      more_(std::move(more)),
      troubles_(troubles) {}

bool CheckpointWriter::after(std::uint64_t steps, const std::function<void()>& await_weights) {
  const int stop = StopSignals::stop();
  const bool asked = StopSignals::take_checkpoint_request() || stop != 0;
  if (!asked && !clock_.due(steps)) return true;
  await_weights();
  bool written = true;
  if (stop == 0)
    written = try_to_write(steps);
  else
    write(steps);
  if (asked && written)
    say(std::string(signal_name(stop != 0 ? stop : SIGUSR1)) + ": checkpoint after " +
        std::to_string(steps) + " steps in " + files_.path(steps));
  return stop == 0;
}

bool CheckpointWriter::try_to_write(std::uint64_t steps) {
  try {
    write(steps);
    return true;
  } catch (const Error& error) {
    troubles_.add(error.what());
    return false;
  }
}

void CheckpointWriter::write(std::uint64_t steps) {
  clock_.made(steps);
  files_.write(steps, arrays_, more_);
  files_.keep_newest();
}

}  // namespace duplex::tools
