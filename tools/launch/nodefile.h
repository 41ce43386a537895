// A nodefile names the machines of a run, one a line; a line's number is its rank.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "net/wire/address.h"

namespace duplex::tools {

constexpr std::uint16_t default_port = 7117;

/// Reads `host`, `host:port` or `host slots=N` (the host N times) from each line; "#" starts a
/// comment, and empty lines do not count. A host that is named again without a port gets the next
/// port. Throws Error with file and line for a line that is none of these, for a place given twice,
/// for more ranks than net::most_ranks or a host's ports, and for an empty file.
std::vector<net::Address> read_nodefile(const std::string& path);

}  // namespace duplex::tools
