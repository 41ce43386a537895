// A nodefile names the machines of a run, one a line, in the order of their ranks.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "net/wire/address.h"

namespace duplex::tools {

constexpr std::uint16_t default_port = 7117;

/// A line of a nodefile, or a rank.
struct Node {
  net::Address address;  ///< Slot i, where it is a rank of its own, has the i-th port from here on.
  int slots = 1;
};

/// Reads `host` or `host:port`, with ` slots=N` behind it where it has several, from each line; "#"
/// starts a comment, and empty lines do not count. A host that is named again without a port gets
/// the next port that no slot before has. Throws Error with file and line for a line that is none
/// of these, for a place given twice, for more slots than net::most_ranks or a host's ports, and
/// for an empty file.
std::vector<Node> read_nodes(const std::string& path);

/// The ranks of a nodefile. With `together`, the slots of a line are one rank's, but that a central
/// server, rank 0, is a rank of its own; otherwise each slot is a rank.
std::vector<Node> ranks_of(const std::vector<Node>& nodes, bool together, bool central = false);

std::vector<net::Address> addresses_of(const std::vector<Node>& ranks);

}  // namespace duplex::tools
