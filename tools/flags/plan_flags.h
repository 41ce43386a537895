// The flags of plan, and the situation that they describe.
#pragma once
#include <string>
#include <vector>

#include "tools/flags/command_line.h"
#include "tools/flags/scenario_flags.h"
#include "tools/flags/wire_flags.h"
#include "tools/launch/nodefile.h"
#include "tools/launch/probing.h"
#include "tools/memory/rank_memory.h"
#include "tools/plan/plan_file.h"
#include "tools/planning/evaluation.h"
#include "tools/setup/device_spec.h"

namespace duplex::tools {

struct PlanFlags {
  ScenarioFlags scenario;
  WireFlags wire;
  DeviceSpec computing;
  double seconds = 10.0;
  std::string ssh = "ssh", logdir, deployed, datadir, deployed_data;
  std::vector<int> without;
  int machines = 0;
  std::string nodefile, file, way;
  std::string output = "report";
  std::vector<std::string> why;
  bool all = false;
  MemorySpec memory;  ///< For --fits.
  std::string fits, optimiser = "sgd";

  void add_to(CommandLine& app);
  /// Call it after parsing: checks what CLI11 cannot. Throws Error(Exit::usage).
  void resolve();
  /// Measures the machines first, if no figures were given. Throws Error.
  Situation situation(std::vector<std::string>& notes);
  /// The plan that follows a strategy, as plan.json has it.
  PlanFile plan_of(const Situation& situation, const Evaluation& chosen, double alone) const;
  /// The nodefile beside --file, where the plan's machines are not those of --nodefile in their
  /// order; "": there is no --file.
  std::string nodes_path() const { return file.empty() ? "" : file + ".nodes"; }
  /// The slots of a machine.
  int slots_of(int machine) const;
  /// Returns whether --slots gives the slots, and not the nodefile.
  bool gives_slots() const { return slots_ > 0; }

 private:
  bool measures() const;
  std::string measure() const;
  std::vector<std::string> addresses() const;  ///< Of nodes_, as text.
  void take_computing(PlanFile& plan) const;
  void deploy_files(ProbeSpec& spec) const;
  Situation measured_situation(const MachinesFile& file, const std::string& path,
                               std::vector<std::string>& notes) const;
  void ask_for_memory(Situation& situation) const;

  CommandLine* app_ = nullptr;
  std::vector<Node> nodes_;  ///< Of the nodefile, if it was given.
  int slots_ = 0;            ///< Of each machine; 0: as the nodefile says, or one.
};

}  // namespace duplex::tools
