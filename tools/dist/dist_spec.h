// The specification of one rank of dist: its training, how ranks train together, and the mesh.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "net/exchange/spec.h"
#include "net/rendezvous/mesh.h"
#include "tools/plan/parallel.h"
#include "tools/setup/training_spec.h"

namespace duplex::tools {

struct DistSpec {
  TrainingSpec training;
  ParallelSpec parallel;
  net::MeshSpec mesh;             ///< Without the fingerprints, which the rank fills in.
  std::uint64_t trace_steps = 0;  ///< The last steps that trace.json shows; 0: no trace.
  std::uint64_t reshare = 0;      ///< Epochs after which ranks pause to share anew; 0: never.
  /// Operations a second at which a replay waits for products of factors; 0: as this machine has.
  double factor_rate = 0.0;
  /// Slots that compute on this machine, those of other ranks included, and those of ranks before
  /// this one.
  int slots_here = 1, slots_before = 0;
  std::string trouble;  ///< The first of the run before a pause.
  /// The steps after which ranks have paused, from whose checkpoint they go on; 0: they have not.
  std::uint64_t paused_after = 0;
  net::FrameSample ledger;              ///< The frames that ledger-RANK.csv has.
  std::optional<PlanConfig> predicted;  ///< Of the plan that it follows, if there is one.
  /// The network that this plan is for.
  struct PlannedNetwork {
    std::string plan;   ///< Its file.
    std::string title;  ///< "Resnet34".
    std::string input;  ///< "1x3x224x224".
    std::int64_t parameters = 0;
  };
  std::optional<PlannedNetwork> planned;

  int rank() const { return mesh.rank; }
  /// Returns whether it goes on from a checkpoint, if there is one.
  bool resumes() const { return training.resume || paused_after > 0; }
  /// Returns whether every worker's optimiser has a state of its own, which no other rank knows.
  bool workers_keep_state() const {
    return parallel.average > 0 && training.optimiser.states() > 0;
  }
  /// Throws Error(usage) if it follows a plan for another network, which may be of the same name.
  void require_planned(const Model& model) const;
  /// Everything beside model and data that all ranks must agree on.
  std::string settings() const {
    return parallel.settings() + parallel.share_text() + ", " + training.settings();
  }
  /// The samples of each step that a rank trains on, and those of one of its slots.
  datasets::Share share_of(int rank) const;
  datasets::Share share_of(int rank, int slot) const;
  int slots_of(int rank) const {
    return mesh.topology.is_worker(rank) ? parallel.slots_of(mesh.topology.worker_number(rank)) : 1;
  }
  /// Samples that all workers together take in a step.
  std::uint64_t step_samples() const;
  /// Returns the specification of the exchange; its ledger has no files yet.
  net::ExchangeSpec exchange() const;
};

}  // namespace duplex::tools
