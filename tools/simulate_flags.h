// The flags of simulate, and what they mean for the simulation.
#pragma once
#include <CLI/CLI.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "layers/model.h"
#include "tools/equations.h"
#include "tools/model_flags.h"
#include "tools/parallel_flags.h"
#include "tools/replay.h"
#include "tools/simulation/spec.h"

namespace duplex::tools {

struct SimulateFlags {
  ModelFlags model;
  std::optional<double> grad, comm;
  std::string profile, rate;
  std::vector<std::string> from;
  ParallelFlags parallel;
  std::string output = "report", logdir, owner_rate;
  double queue = 1e6;
  std::optional<double> unfair;
  int workers = 0, records = 32;
  std::int64_t batches = 128, batch = 32;
  std::uint64_t seed = 1, trace_steps = 10;
  double latency = 50e-6;
  std::optional<double> resolution;
  std::vector<std::string> slow, links, lose;
  bool trace = false;

  void add_to(CLI::App& app);
  /// After parsing: checks what CLI11 cannot. Throws Error(Exit::usage).
  void settle() const;
  bool writes() const { return trace || !logdir.empty(); }
};

/// What a simulation starts from: the network, its layers' times, and the link.
struct Situation {
  Model model;
  LayerTimes times;                ///< Of a batch.
  double rate = 0.0;               ///< Bytes a second of a link, in each direction,
  double owner_rate = 0.0;         ///< and of an owner's work; 0: it takes no time.
  Costs costs;                     ///< The same for the equations.
  std::vector<std::string> notes;  ///< Lines for the user: where this comes from.
};
Situation situation_of(const SimulateFlags& flags);

/// The run of `workers` workers.
simulation::Spec spec_of(const SimulateFlags& flags, const Situation& situation, int workers);

}  // namespace duplex::tools
