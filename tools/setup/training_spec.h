// A training specification: everything that local and a rank of dist need to know of a training.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/optimiser.h"
#include "datasets/decoding/framing.h"
#include "tools/checkpoint/checkpoints.h"
#include "tools/display/display.h"
#include "tools/run_directory/time_to_accuracy.h"
#include "tools/setup/device_spec.h"
#include "tools/setup/model_spec.h"

namespace duplex::tools {

struct TrainingSpec {
  ModelSpec model;
  DeviceSpec computing;
  OptimiserSpec optimiser;
  LearningRate rate;
  std::int64_t batch = 32;               ///< Images.
  std::optional<std::uint64_t> epochs;   ///< None: `batches` alone say how long.
  std::optional<std::uint64_t> batches;  ///< With `epochs`, whichever ends first; none: no limit.
  std::uint64_t seed = 1;                ///< Decides weights, shuffling, dropout, mirroring.
  bool mirror = false;                   ///< Half of the images are mirrored.
  datasets::CropRange crop;              ///< These and the next are as LoaderOptions has them.
  int pad = 0, test_side = 0;
  std::vector<double> pixel_mean, pixel_stddev;  ///< By channel; empty: Normalisation::standard.

  double ema = 0.0;  ///< Decay of the average of the weights (MovingAverage); 0: there is none.
  float label_smoothing = 0.0F;  ///< The training's loss has it, and tests have none.

  std::string datadir;
  double test_fraction = 0.2;           ///< Part of each class, where the data set does not say.
  bool strict = false;                  ///< An image that cannot be read is an error.
  bool accuracy = false;                ///< Test after training.
  double test_every = 0.0;              ///< In epochs; 0: after training at most.
  std::optional<AccuracyTarget> until;  ///< The training ends when a test reaches it.
  bool profile = false;                 ///< Time every layer.

  CheckpointPlan checkpoints;
  bool resume = false;  ///< Go on from the newest checkpoint of the run directory, if there is one.

  std::string logdir;   ///< The run directory; empty: it names itself.
  std::string weights;  ///< safetensors file to start from; empty: none.
  std::string save;  ///< safetensors file for the trained weights, beside the run's; empty: none.

  bool quiet = false;       ///< Tell of nothing but what is wrong.
  Display display;          ///< The place where progress is shown.
  std::string tensorboard;  ///< Folder for TensorBoard's event files; empty: none.

  bool trains() const { return epochs != 0 && batches != 0; }  ///< Otherwise it only tests.
  bool replays() const;  ///< Whether nothing is computed (tools/training/replay.h).
  /// Everything that must be the same on all ranks of a run, as one line of text.
  /// `with_length`: how many epochs or batches, too.
  std::string settings(bool with_length = true) const;
};

}  // namespace duplex::tools
