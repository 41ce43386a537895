// summary.json and rank-RANK.json: what a run, or one rank of it, has measured.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "net/connection/connection_bytes.h"
#include "net/ledger/ledger.h"
#include "net/store/store.h"
#include "net/topology/shard_map.h"
#include "tools/run_directory/time_to_accuracy.h"
#include "tools/text/quartiles.h"

namespace duplex::tools {

/// Medians over the steps after warm-up, and the training of one worker as a whole.
struct TrainingResult {
  Quartiles gradient, total, await, push, data;  ///< Seconds a step.
  double data_share = 0.0;       ///< Part of these steps' time that was spent waiting for data.
  std::uint64_t data_steps = 0;  ///< Steps that waited for data for more than 1% of their time.
  Quartiles own_gradient;    ///< `gradient` of the steps that this process trained. No file has it.
  bool update_apart = true;  ///< push is the update; else it is part of gradient. No file has it.
  std::uint64_t steps = 0;
  /// Mean over the last tenth of the steps, as far as this worker knows their losses.
  std::optional<double> loss;
  double seconds = 0.0;  ///< Of the steps, without the tests between them.
  /// The steps that `seconds` is of; none: all. A worker that keeps no rows does not know how long
  /// those before a checkpoint took.
  std::optional<std::uint64_t> timed_steps;
};

struct AccuracySummary {
  std::uint64_t samples = 0, not_finite = 0, unreadable = 0;  ///< Test images.
  double top1 = 0.0, top5 = 0.0;                              ///< Fractions of `samples`.
  double loss = 0.0;                                          ///< NaN where outputs are not finite.
};

/// A rank and the run that it belonged to.
struct RankMode {
  int ranks = 1;
  net::ServerMode server = net::ServerMode::distributed;
  net::Sync sync = net::Sync::join;
  bool replayed = false;
};

/// The time that a rank cost the others at one owner (net/store/straggler_tally.h).
struct StragglerSummary {
  int rank = 0;
  std::uint64_t steps = 0;  ///< Steps in which its gradients were the last to be complete.
  double late = 0.0;        ///< Seconds of all these steps in which nobody else's were missing.
  double receiving = 0.0;   ///< Part of them in which its gradients were coming in.
};

/// Batches of a lost rank that another has trained in its place.
struct LeaseSummary {
  int rank = 0, by = 0;
  std::uint64_t batches = 0;
};

struct RunSummary {
  std::string command;                     ///< "local", "dist", "simulate".
  std::optional<TrainingResult> training;  ///< Only a rank that trains has it.
  std::optional<int> rank;                 ///< None: local's.
  std::optional<int> workers;
  std::optional<int> slots;  ///< Of all workers together; none: each has one.
  std::optional<RankMode> mode;
  std::optional<net::TrafficSummary> traffic;  ///< None: local's.
  std::optional<net::FramesKept> ledger;       ///< Frames in its file. None: local's, an old one.
  net::FrameBytes bytes_before;  ///< Those of earlier parts of a training that went on.
  std::optional<std::vector<net::ConnectionBytes>> connections;
  std::optional<std::vector<StragglerSummary>> stragglers;  ///< Only a synchronous owner has it.
  std::optional<std::int64_t> peak_memory_bytes;
  /// Seconds that it takes to bring all gradients into plain memory of the host, and all weights
  /// back. Only local has them, where processors compute.
  std::optional<double> gradients_down, weights_up;
  /// Processor seconds to read and decode an image, beside computing. Only local has it, likewise.
  std::optional<double> sample_processor;
  std::optional<double> trained;         ///< Simulated seconds until the last gradient is applied.
  std::optional<double> speedup;         ///< Only a simulation in which no rank was lost has it.
  std::optional<std::vector<int>> lost;  ///< Ranks that an asynchronous run went on without.
  /// Ranks that were lost and came back, each as often as it did. Only a central server of an
  /// asynchronous run has it, and the leases.
  std::optional<std::vector<int>> returned;
  std::optional<std::vector<LeaseSummary>> leases;
  std::optional<std::string> ended_by;  ///< The reason why a simulation ended early.
  std::optional<AccuracySummary> accuracy;
  std::optional<TimeToAccuracy> reached;  ///< Only a run that reached RunConfig::until has it.
};

}  // namespace duplex::tools
