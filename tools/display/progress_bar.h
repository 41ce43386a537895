// The text of a training's progress on a terminal: a bar, and what a step has come to.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace duplex::tools {

struct TrainingProgress {
  std::uint64_t done = 0, steps = 1;  ///< Steps that are done, of so many.
  std::uint64_t epoch = 1;            ///< From 1.
  std::optional<double> loss;
  std::optional<double> top1;      ///< Part of the samples that were classified correctly, 0 to 1.
  double images = 0.0;             ///< Images a second.
  double left = 0.0;               ///< Seconds.
  std::uint64_t memory_bytes = 0;  ///< 0: unknown.
};

/// Returns exactly `width` ASCII characters where there is room for the bar, else what fits: the
/// narrower the line, the less it says. The steps are the last to go.
std::string progress_bar(const TrainingProgress& progress, std::size_t width);

}  // namespace duplex::tools
