// The processes of one run, watched by the clock.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/campaigns/kills/plan.h"

namespace duplex::campaigns {

std::int64_t clock_now();  ///< The monotonic clock, in nanoseconds.

/// A process of a run, and how it ended.
struct Member {
  int rank = -1;  ///< -1: the launcher, or a process that the launcher has left behind.
  int pid = -1;
  std::string log;         ///< The path of its output.
  int exit = -1;           ///< Its exit code, or 128 + the signal that ended it; -1: it runs.
  std::int64_t ended = 0;  ///< When, by clock_now().
  bool orphan = false;     ///< It was the launcher's.
};

/// The moment at which the signal was raised, and the process.
struct Mark {
  std::int64_t time = 0;
  int pid = -1;
};
std::optional<Mark> read_mark(const std::string& folder);

/// The processes of one run. Those that still run are killed at the end.
class Team {
 public:
  /// `folder` has the run's files, and is in the command line of every process.
  explicit Team(std::string folder) : folder_(std::move(folder)) {}
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  /// Starts the program with these words. `settings` are added to its environment.
  void start(int rank, const Words& words, const Words& settings, const std::string& log);

  struct Limits {
    double resume_s = 0.0;  ///< SIGCONT this long after the mark; 0: never.
    double hung_s = 30.0;   ///< All are killed this long after the mark, or after the start.
  };
  /// Waits until all have ended. Returns false if some had to be killed.
  bool wait(const Limits& limits);

  const std::vector<Member>& members() const { return members_; }
  const Member* of_rank(int rank) const;
  /// The longest time, in seconds, for which this program itself got no processor.
  double longest_gap() const { return gap_; }

 private:
  void reap();
  void kill_all() const;

  std::string folder_;
  std::vector<Member> members_;
  bool left_ = false;  ///< Processes of this run that were started by others may still run.
  double gap_ = 0.0;
};

/// The ports of one of several processes that run side by side, which must not find the same port
/// free. All are below those that the kernel hands out.
class Ports {
 public:
  /// This is process `part` of `parts`.
  Ports(int part, int parts);
  /// Returns ports on loopback that nobody listens on, other ones each time.
  std::vector<int> next(int count);

 private:
  int begin_, end_, last_;
};

}  // namespace duplex::campaigns
