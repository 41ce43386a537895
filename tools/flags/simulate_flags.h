// The flags of simulate, and what they mean for the simulation.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "net/ledger/sampled_steps.h"
#include "tools/flags/command_line.h"
#include "tools/flags/scenario_flags.h"
#include "tools/scenario/scenario.h"

namespace duplex::tools {

struct SimulateFlags {
  ScenarioFlags scenario;
  ParallelSpec parallel;
  std::string output = "report", logdir;
  int workers = 0, records = 32, together = 1;
  std::vector<int> slots;  ///< By worker, or one for all; empty: not given.
  std::int64_t batches = 128;
  std::uint64_t trace_steps = 10;
  std::vector<std::string> lose;
  bool trace = false;
  net::FrameSample ledger;

  void add_to(CommandLine& app);
  /// Call it after parsing: checks what CLI11 cannot. Throws Error(Exit::usage).
  void resolve();
  SimulationRequest request() const;
  /// The run's config.json.
  RunConfig config(const Scenario& found, const net::Topology& topology) const;
  bool writes() const { return trace || !logdir.empty(); }

 private:
  void take_slots();
};

/// The scenario that the flags describe; `notes` gets lines for the user on where it comes from.
Scenario scenario_of(const SimulateFlags& flags, std::vector<std::string>& notes);

}  // namespace duplex::tools
