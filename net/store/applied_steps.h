// The steps of one worker whose gradients are in a chunk.
#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "net/store/step_ranges.h"

namespace duplex::net {

/// All steps before some step, and perhaps some later ones, which others have trained in the
/// worker's place.
class AppliedSteps {
 public:
  explicit AppliedSteps(std::uint64_t before = 0) : before_(before) {}

  bool has(std::uint64_t step) const { return step < before_ || later_.count(step) != 0; }
  void add(std::uint64_t step);
  /// The first step that is not among them.
  std::uint64_t first_missing() const { return before_; }
  std::uint64_t count() const { return before_ + later_.size(); }
  /// Those behind the first one that is missing.
  const std::set<std::uint64_t>& later() const { return later_; }

  /// "12", or "12+14+17" for the steps before 12 and these two.
  std::string text() const;
  /// Reads it again. Throws Error.
  static AppliedSteps parse(const std::string& text);

  bool operator==(const AppliedSteps& other) const {
    return before_ == other.before_ && later_ == other.later_;
  }

 private:
  std::uint64_t before_;
  std::set<std::uint64_t> later_;  ///< None is `before_` or less.
};

/// Those of some steps that are not in all of these sets, in order.
std::vector<StepRange> missing_of(const std::vector<AppliedSteps>& sets, const StepRange& steps);

}  // namespace duplex::net
