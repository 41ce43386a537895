#include "layers/recorded_phase.h"

#include <cstdio>

namespace duplex {
namespace {

/// Memory moves when networks are made, and then stays. Where it goes on to move, recordings cost
/// more than they save.
constexpr int most_recordings = 8;

}  // namespace

Recording* RecordedPhase::get(Device& device, const std::function<void()>& prepare,
                              const std::function<void()>& work) {
  if (!device.records()) return nullptr;
  if (recording_ && recording_->outdated()) {
    recording_.reset();
    has_run_ = false;
    if (recorded_ == most_recordings)
      std::fprintf(
          stderr,
          "the device's memory moves again and again; operations are asked for one by one, "
          "without a recording\n");
  }
  if (!has_run_) {
    has_run_ = true;  // The caller's call makes what is made when it is first needed.
    return nullptr;
  }
  if (!recording_ && recorded_ == most_recordings) return nullptr;
  prepare();
  if (recording_) return recording_.get();
  recording_ = device.record(work);
  recorded_ = recording_ ? recorded_ + 1 : most_recordings;
  return recording_.get();
}

}  // namespace duplex
