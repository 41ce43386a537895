// Which frames of a run its ledger's file has: every one of a short run, whole steps of a long one.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace duplex::net {

/// The rule by which frames are chosen for the file.
struct FrameSample {
  enum class Rule {
    automatic,  ///< Every frame, until the file is long (SampledSteps).
    every,      ///< Every `every`-th step.
    none,       ///< No frame: the sums of the steps are enough.
  };
  Rule rule = Rule::automatic;
  std::uint64_t every = 1;
};

/// From the step `from` on, the file has each step that `every` divides; 0: none.
struct SampledStretch {
  std::uint64_t from = 0, every = 1;
};

/// Says which frames a file has, to people and to programs.
struct FramesKept {
  std::string text;  ///< "all", "none", "every 4th step", "steps 0 to 411, then every 2nd".
  std::vector<SampledStretch> stretches;  ///< In their order.
};

/// Decides by its number whether the file has a step: the frames of weights for it, and of its
/// gradients. It has all of them or none, since what is decided of a step that a frame has been
/// seen of stays so.
///
/// The automatic rule keeps every step until the file has `whole_bytes`. Then it keeps every second
/// one, every fourth after `more_bytes` more, and so on; what is kept then spreads over the whole
/// run, since a step that a greater power of two divides is kept longer. It keeps nothing behind
/// `most_bytes`. Frames of steps that have begun by then are still written when they come: in a
/// synchronous run the rest of two steps, in an asynchronous one all that slow peers send in the
/// early steps.
class SampledSteps {
 public:
  static constexpr std::uint64_t whole_bytes = std::uint64_t{64} << 20;
  static constexpr std::uint64_t more_bytes = std::uint64_t{16} << 20;
  static constexpr int doublings = 20;
  static constexpr std::uint64_t most_bytes = whole_bytes + doublings * more_bytes;

  SampledSteps(const FrameSample& sample, std::uint64_t first_step);

  bool has(std::uint64_t step) const;
  bool has_all() const { return stretches_.size() == 1 && stretches_[0].every == 1; }

  /// A frame of this step has been seen.
  void saw(std::uint64_t step) { newest_ = step > newest_ ? step : newest_; }
  /// So many bytes were written. Returns true where fewer steps are kept from now on.
  bool wrote(std::uint64_t bytes);

  FramesKept kept() const { return {text(), stretches_}; }

 private:
  std::string text() const;

  bool automatic_;
  std::vector<SampledStretch> stretches_;
  std::uint64_t newest_ = 0;
  std::uint64_t bytes_ = 0, next_ = whole_bytes;  ///< Bytes at which fewer steps are kept.
};

}  // namespace duplex::net
