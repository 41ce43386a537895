// A schedule says how many steps and epochs a training has, and when tests are due.
#pragma once
#include <cstdint>

namespace duplex::tools {

/// The steps of a run are those of its epochs, or fewer. An epoch is over when as many samples have
/// been seen as the training part has, which is in the middle of a step as a rule.
struct Schedule {
  std::uint64_t steps = 0;
  std::uint64_t step_samples = 1;  ///< Samples that all workers together take in a step.
  /// The training has gone on from these steps, after which so many samples had been seen, perhaps
  /// by another number of workers.
  std::uint64_t first_step = 0, first_sample = 0;
  std::uint64_t epoch_samples = 1;     ///< The size of the training part.
  std::uint64_t steps_per_update = 1;  ///< Learning rates go by updates.
  /// The weights include every sample seen only after a multiple of so many steps, where gradients
  /// are accumulated, or workers' weights averaged.
  std::uint64_t steps_per_round = 1;
  double test_every = 0.0;  ///< In epochs; 0: never.

  /// Samples seen after so many steps, first_step or more.
  std::uint64_t samples(std::uint64_t after) const {
    return first_sample + (after - first_step) * step_samples;
  }
  /// The epochs that so many steps are, with fractions.
  double epochs(std::uint64_t after) const;
  /// The epoch, from 0, of a step's first sample.
  std::uint64_t epoch_of(std::uint64_t step) const { return samples(step) / epoch_samples; }
  /// Returns whether a test is due after so many steps, which it is at the first end of a round
  /// behind each `test_every` epochs.
  bool test_due(std::uint64_t after) const;
  /// Number of steps at the start that no figure counts: a tenth of the run, ten at most.
  std::uint64_t warm_up() const;
  /// Those of them that are left where `first` steps were trained before.
  std::uint64_t warm_up_after(std::uint64_t first) const {
    return warm_up() > first ? warm_up() - first : 0;
  }
};

}  // namespace duplex::tools
