// Expands lists that Slurm's environment shortens, in two ways.
#pragma once
#include <string>
#include <vector>

namespace duplex::tools {

/// Expands host names: "lab[01-03,7],other" is lab01, lab02, lab03, lab7 and other. Numbers keep
/// the zeros in front; a name may have several brackets, of which the last counts fastest. Throws
/// Error(Exit::usage) with the list and what is wrong with it, also for more than 65,536 hosts or a
/// name of more than 253 letters.
std::vector<std::string> expand_hosts(const std::string& list);

/// Expands counts: "2(x3),1" is 2, 2, 2 and 1. Throws as expand_hosts() does.
std::vector<int> expand_counts(const std::string& list);

}  // namespace duplex::tools
