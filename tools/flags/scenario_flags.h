// The flags that describe a scenario: network, seconds of computing, links, stragglers. simulate
// and plan have them in common.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "tools/flags/command_line.h"
#include "tools/plan/machines_file.h"
#include "tools/scenario/scenario.h"
#include "tools/setup/model_spec.h"

namespace duplex::tools {

struct ScenarioFlags {
  ModelSpec model;
  std::optional<double> grad, comm;
  std::string profile, rate, owner_rate, seal_rate, moving, measured;
  std::optional<int> cores, threads;  ///< Of a machine; that compute on a rank.
  std::vector<std::string> from, slow, links;
  std::optional<std::int64_t> batch;
  std::uint64_t seed = 1;
  double latency = 50e-6, queue = 1e6;
  std::optional<double> burst;
  net::PackedParts packed;
  std::optional<double> factor_rate;
  std::optional<double> unfair, resolution;

  /// `command` begins the messages of errors; `who`: what the numbers in --slow and --link stand
  /// for, as "ranks".
  void add_to(CommandLine& app, const std::string& command, const std::string& who);
  /// Call it after parsing: checks what CLI11 cannot, and takes the network from --from. Throws
  /// Error(Exit::usage).
  void resolve();
  /// Takes links that --link-rate bounds to so many bytes a second, unless other ones are given.
  void bound_links(double link_rate);
  /// The scenario; `notes` gets lines for the user on where it comes from. Throws Error.
  Scenario scenario(std::vector<std::string>& notes) const;
  /// The links and stragglers of so many ranks or machines, and all else but how and how many
  /// train.
  SimulationRequest request(int ranks) const;
  /// Throws Error(Exit::usage), saying `who` says the same, where a flag was given whose value is
  /// measured.
  void refuse_measured(const std::string& who) const;
  /// Returns whether figures of computing or links were given.
  bool has_figures() const;
  /// The machines of --measured, after resolve(); none: it was not given.
  const std::optional<MachinesFile>& machines() const { return machines_; }
  /// Takes over the links, speeds and latency of the machines of --measured, as far as flags do not
  /// give them. Throws Error(Exit::usage) if there are fewer machines than ranks.
  void add_machines(SimulationRequest& request, int ranks) const;

 private:
  void take_machines();
  bool bounded() const;
  Error refusal(const std::string& text) const;
  double processor_seconds(const std::string& text) const;  ///< A part of --moving.

  std::string command_;
  CommandLine* app_ = nullptr;
  std::optional<MachinesFile> machines_;
  std::optional<double> bounded_rate_;
};

/// Cuts "WHO:HOW" at its first colon. Throws Error(Exit::usage), beginning with `what`.
std::pair<std::string, std::string> at_colon(const std::string& text, const std::string& what);

}  // namespace duplex::tools
