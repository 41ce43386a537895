// Runs `duplex probe` on the machines of a nodefile.
#pragma once
#include <string>
#include <vector>

#include "net/wire/address.h"

namespace duplex::tools {

struct ProbeSpec {
  std::string nodefile;             ///< Its path, which is the same on every machine.
  std::vector<net::Address> nodes;  ///< What it has.
  std::string ssh = "ssh";
  bool has_key = false;            ///< Whether `words` have --key.
  std::vector<std::string> words;  ///< probe's flags: network, batch, device and so on.
  std::string output;              ///< A rank on this machine writes machines.json there.
};

/// Runs it on all machines to the end, and passes on what it says. Throws Error that names the
/// machines which could not be measured, and Error(Exit::usage) if none of them is this one.
void probe_machines(const ProbeSpec& spec);

}  // namespace duplex::tools
