// The flags of simulate, and what they mean for the simulation.
#pragma once
#include <CLI/CLI.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "net/ledger/sampled_steps.h"
#include "tools/scenario/scenario.h"
#include "tools/setup/model_spec.h"

namespace duplex::tools {

struct SimulateFlags {
  ModelSpec model;
  std::optional<double> grad, comm;
  std::string profile, rate;
  std::vector<std::string> from;
  ParallelSpec parallel;
  std::string output = "report", logdir, owner_rate, seal_rate;
  double queue = 1e6;
  std::optional<double> unfair;
  int workers = 0, records = 32;
  std::int64_t batches = 128;
  std::optional<std::int64_t> batch;
  std::uint64_t seed = 1, trace_steps = 10;
  double latency = 50e-6;
  std::optional<double> resolution;
  std::vector<std::string> slow, links, lose;
  bool trace = false;
  net::FrameSample ledger;

  void add_to(CLI::App& app);
  /// Call it after parsing: checks what CLI11 cannot. Throws Error(Exit::usage).
  void resolve();
  SimulationRequest request() const;
  /// The run's config.json.
  RunConfig config(const Scenario& scenario, const net::Topology& topology) const;
  bool writes() const { return trace || !logdir.empty(); }
};

/// The scenario that the flags describe; `notes` gets lines for the user on where it comes from.
Scenario scenario_of(const SimulateFlags& flags, std::vector<std::string>& notes);

}  // namespace duplex::tools
