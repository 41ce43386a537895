// The flags of plan, and the situation that they describe.
#pragma once
#include <CLI/CLI.hpp>

#include <string>
#include <vector>

#include "net/wire/address.h"
#include "tools/flags/scenario_flags.h"
#include "tools/plan/plan_file.h"
#include "tools/planning/evaluation.h"

namespace duplex::tools {

struct PlanFlags {
  ScenarioFlags scenario;
  int machines = 0;
  std::string nodefile, file, way;
  std::string output = "report";
  std::vector<std::string> why;
  bool all = false;

  void add_to(CLI::App& app);
  /// Call it after parsing: checks what CLI11 cannot. Throws Error(Exit::usage).
  void resolve();
  Situation situation(std::vector<std::string>& notes) const;
  /// The plan that follows a strategy, as plan.json has it.
  PlanFile plan_of(const Situation& situation, const Evaluation& chosen, double alone) const;

 private:
  std::vector<net::Address> nodes_;  ///< Of the nodefile, if it was given.
};

}  // namespace duplex::tools
