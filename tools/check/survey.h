// Collects the facts of a nodefile's machines for `duplex check`, before anybody judges them.
#pragma once
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tools/check/machine/messages.h"
#include "tools/launch/nodefile.h"

namespace duplex::tools {

/// Why a machine could not be asked.
struct Absence {
  std::string reason;  ///< In a line that can be shown.
  /// Exit code of ssh, or of the program there; 0: it did not end; -1: it could not be started.
  int code = 0;
};

/// The rates that a pair of machines measured, at the lower index.
struct PairRates {
  std::size_t low = 0, high = 0;  ///< Machines.
  double up = 0.0, down = 0.0;    ///< Bytes a second, from the lower one and to it; 0: none.
  double round_trip = 0.0;        ///< Seconds.
  std::string trouble;            ///< Why there are no figures.
};

/// All lists are by machine, in the order of the nodefile.
struct Survey {
  std::vector<CheckedMachine> machines;
  std::vector<std::optional<Absence>> absent;  ///< None: it has answered.
  std::vector<MachineFacts> facts;             ///< They are of those that have answered.
  std::vector<std::vector<CallFacts>> calls;   ///< By machine that called others.
  std::vector<PairRates> rates;
  std::size_t unmeasured = 0;  ///< Pairs that the time did not suffice for.

  bool present(std::size_t machine) const { return !absent[machine]; }
  std::vector<std::size_t> all_present() const;
  /// Returns the call between two, which is the worst of all ports; null: there was none.
  const CallFacts* call(std::size_t from, std::size_t to) const;
};

/// The machines of a nodefile, with the ports of all ranks that it may have.
std::vector<CheckedMachine> machines_of(const std::vector<Node>& nodes);

struct SurveySettings {
  std::string ssh = "ssh";
  double seconds = 0.2;  ///< Each transfer that counts takes so long, about.
  /// Takes a line for the user, about what is being done.
  std::function<void(const std::string&)> log;
};

/// Asks all machines, this one directly and the others by ssh. What fails on a machine is a part of
/// the survey.
Survey survey_machines(const std::vector<CheckedMachine>& machines, const SurveySettings& settings);

/// The greatest rate that links of this survey have, as three quarters of them do not reach it; 0:
/// nothing was measured.
double usual_rate(const Survey& survey);

}  // namespace duplex::tools
