// One run of the campaign: it is started, hit, and compared with what is promised.
#pragma once
#include <array>
#include <map>
#include <string>
#include <vector>

#include "tests/campaigns/kills/plan.h"
#include "tests/campaigns/kills/record.h"
#include "tests/campaigns/kills/team.h"

namespace duplex::campaigns {

using Weights = std::map<std::string, std::vector<float>>;

/// A run of a mode that nobody disturbs: its calls, its weights, and who writes checkpoints.
struct Undisturbed {
  std::array<Calls, ranks> calls;
  Weights weights;
  std::vector<int> keep;  ///< The ranks that write checkpoints.
};

class Judge {
 public:
  /// `folder`: for runs and data; `library`: that for LD_PRELOAD; `ports`: for all runs.
  Judge(std::string folder, std::string library, Ports ports);

  /// Runs the mode twice without a signal. Throws if that fails, or gives other bits.
  Undisturbed undisturbed(const Mode& mode);
  /// Runs it with the signal. The run's files stay in run_folder() until the next run.
  Outcome run(const Cell& cell, const Place& place, const Undisturbed& expected);

  std::string run_folder() const { return folder_ + "/run"; }

 private:
  Words dist_words(const Mode& mode, const std::string& job) const;
  void begin(Team& team, const Cell& cell, const Words& settings, bool resume,
             const std::string& log);
  void judge_by_hand(const Cell& cell, const Team& team, const Mark& mark, Outcome& outcome) const;
  void judge_launched(const Cell& cell, const Team& team, const Mark& mark, Outcome& outcome) const;
  void go_on(const Cell& cell, const Undisturbed& expected, Outcome& outcome);
  void compare(const Cell& cell, const Undisturbed& expected, Outcome& outcome) const;
  std::uint64_t newest_complete(const Undisturbed& expected) const;

  std::string folder_, library_;
  Ports ports_;
};

}  // namespace duplex::campaigns
