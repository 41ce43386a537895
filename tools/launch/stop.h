// duplex launch stop ends the ranks of a nodefile, on this machine by their records, on the others
// by this program there.
#pragma once
#include <string>
#include <vector>

#include "net/wire/address.h"
#include "tools/launch/hosts.h"

namespace duplex::tools {

/// Seconds that ranks have to obey SIGTERM, before SIGKILL: they finish their steps and write a
/// checkpoint. One that is stopped (SIGSTOP) cannot obey, and has none.
constexpr double obey_seconds = 30.0;

/// Returns whether a process is stopped, by SIGSTOP or a terminal.
bool is_stopped(int process);

/// Ends the ranks that run on this machine with the nodefile, waits until they have ended, and
/// prints what it did; `host` is this machine's name in that. Returns exit code 1 if some still
/// run.
int stop_here(const std::string& nodefile, const std::string& host);

/// The way in which the machines of a nodefile are told to end its ranks.
struct StopSpec {
  std::string nodefile;  ///< Its name in records here.
  std::string there;     ///< And on other machines.
  std::string ssh = "ssh";
  Place place;
  bool only_print = false;
};

/// Does the same on all machines of the nodefile at once. Returns exit code 1 if one could not be
/// reached, or ranks still run.
int stop_everywhere(const StopSpec& spec, const std::vector<net::Address>& nodes);

}  // namespace duplex::tools
