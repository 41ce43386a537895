// The flags of dist (Appendix C.3).
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/dist/dist_spec.h"
#include "tools/flags/command_line.h"
#include "tools/flags/training_flags.h"
#include "tools/flags/wire_flags.h"
#include "tools/launch/rank_source.h"
#include "tools/run_directory/run_config.h"

namespace duplex::tools {

struct DistFlags {
  TrainingFlags training;
  WireFlags wire;
  ParallelSpec parallel;
  std::string nodefile, job = "duplex";
  int index = -1;
  std::string plan;                     ///< plan.json; empty: not given.
  int slots = 0;                        ///< Of each worker; 0: as the nodefile says.
  std::vector<int> without;             ///< Ranks of the nodefile that are left out.
  std::vector<net::Address> addresses;  ///< By rank, from the nodefile or from what started this
                                        ///< process.
  std::uint64_t trace_steps = 10, reshare = 0;
  double factor_rate = 0.0;
  bool trace = false;
  net::FrameSample ledger;
  std::string launch_nodefile;  ///< The one that launch was given, if its plan made another of it.
  std::string launch_display;   ///< Display::word() of launch; empty: it did not start this rank.

  void add_to(CommandLine& app);
  /// Call it after parsing: checks what CLI11 cannot, and finds rank and addresses. Throws
  /// Error(Exit::usage). Returns a line for the user that says where they come from.
  std::string resolve();
  bool launched() const { return !launch_display.empty(); }
  /// Returns the nodefiles by which `launch stop` finds this rank.
  std::vector<std::string> nodefiles() const {
    return launch_nodefile.empty() ? std::vector<std::string>{nodefile}
                                   : std::vector<std::string>{nodefile, launch_nodefile};
  }
  /// Returns whether the slots of a line of the nodefile are one rank's.
  bool takes_slots() const;
  /// Call it after resolve(). Throws Error if the key cannot be read, and Error(Exit::usage) if
  /// there are too few ranks.
  DistSpec spec() const;

 private:
  void take_plan();
  void take_slots(const RankSource& source);

  CommandLine* app_ = nullptr;
  std::optional<PlanConfig> predicted_;
  std::optional<DistSpec::PlannedNetwork> planned_;
  int slots_here_ = 1, slots_before_ = 0;
};

}  // namespace duplex::tools
