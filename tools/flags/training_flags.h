// Flags that local and dist share: those of Appendix C.1, and what training needs beyond them.
#pragma once
#include <CLI/CLI.hpp>

#include <optional>
#include <string>
#include <vector>

#include "core/optimiser.h"
#include "tools/flags/device_flags.h"
#include "tools/flags/model_flags.h"
#include "tools/training/setup.h"

namespace duplex::tools {

struct TrainingFlags {
  ModelFlags model;
  std::string datadir, logdir, weights, save;
  bool accuracy = false, profile = false, mirror = false, strict = false;
  std::optional<std::uint64_t> epochs;  ///< None: --batches alone say how long.
  std::uint64_t batches = 0, seed = 1;
  std::uint64_t test_every = 0;  ///< In epochs; 0: after training at most.
  std::int64_t batch = 32;
  std::string optimiser = "sgd";
  double rate = 0.01, rate_factor = 0.1;
  std::vector<std::uint64_t> rate_steps;
  std::uint64_t warmup = 0;
  OptimiserSpec spec;
  double test_fraction = 0.2;
  DeviceFlags computing;

  void add_to(CLI::App& app);
  /// Call it after parsing: checks what CLI11 cannot. Throws Error(Exit::usage).
  void resolve();

  LearningRate learning_rate() const;
  SetupSpec setup() const;
  bool trains() const { return epochs != 0; }  ///< Otherwise it only tests.
  bool replays() const;                        ///< Whether nothing is computed
                                               ///< (tools/training/replay.h).
  /// The training's part of config.json. `device` is null for a replay.
  RunConfig config(const std::string& command, const TrainingSetup& setup,
                   const Device* device) const;
  /// Everything that must be the same on all ranks of a run, as one line of text.
  std::string settings() const;
};

}  // namespace duplex::tools
