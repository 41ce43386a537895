// Nodefiles.
#include "tools/launch/nodefile.h"

#include <algorithm>
#include <set>

#include "tests/fuzz/memory_file.h"

namespace duplex::fuzz {
namespace {

/// Returns whether it may have more than 200 ranks.
bool is_long(const std::string& text) {
  int lines = 0;
  for (auto at = text.find("slots="); at != std::string::npos; at = text.find("slots=", at + 1)) {
    const std::size_t end = std::min(text.find_first_not_of("0123456789", at + 6), text.size());
    if (++lines > 2 || end - at > 8) return true;
  }
  return false;
}

}  // namespace

void nodefile(const Bytes& input) {
  // Thousands of ranks take milliseconds, and there are few ways to write them.
  if (is_long(text_of(input)) && !is_sampled(input)) return;
  static MemoryFile file;
  file.write(input);
  std::vector<net::Address> nodes;
  // A line of 13 letters may stand for 1,024 ranks, of which each takes some hundred bytes.
  reads(input, std::size_t{24} << 10, [&] {
    nodes = tools::addresses_of(tools::ranks_of(tools::read_nodes(file.path()), false));
  });
  std::set<std::string> seen;
  for (const net::Address& node : nodes) {
    require(!node.host.empty() && node.port != 0, "a rank has no address");
    require(seen.insert(node.str()).second, "two ranks have one address");
  }
}

}  // namespace duplex::fuzz
