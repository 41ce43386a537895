// Runs `duplex probe` on the machines of a nodefile.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "net/wire/address.h"
#include "tools/launch/children.h"
#include "tools/launch/hosts.h"

namespace duplex::tools {

struct ProbeSpec {
  std::string nodefile;             ///< Its path here.
  std::vector<net::Address> nodes;  ///< What it has.
  std::string ssh = "ssh";
  Place place;                               ///< Where the machines have this program.
  std::map<std::string, std::string> there;  ///< Files' paths on other machines, where they differ.
  bool has_key = false;                      ///< Says whether `words` have --key.
  std::vector<std::string> words;            ///< probe's flags: network, batch, device and so on.
  std::string output;                        ///< A rank on this machine writes machines.json there.
};

/// Returns which command looks for the cause, if ranks did not meet or ssh did not reach a machine;
/// empty otherwise. `place`: where the machines have the program.
std::string check_advice(const TogetherResult& result, const std::string& nodefile,
                         const std::string& ssh, const Place& place);

/// Runs it on all machines to the end, and passes on what it says. Throws Error that names the
/// machines which could not be measured, and Error(Exit::usage) if none of them is this one.
void probe_machines(const ProbeSpec& spec);

}  // namespace duplex::tools
