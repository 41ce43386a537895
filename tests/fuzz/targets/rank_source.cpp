// The variables that a launcher sets. An input has a variable in each line, NAME=VALUE; "central",
// "index=N", "nodefile", "together" and "slots=N" are the flags, and what follows a line "--" is
// the nodefile.
#include "tools/launch/rank_source.h"

#include <cstdlib>
#include <iterator>
#include <map>
#include <numeric>
#include <sstream>

#include "tests/fuzz/memory_file.h"

namespace duplex::fuzz {
namespace {

struct Start {
  tools::RankFlags flags;
  std::map<std::string, std::string> variables;
};

Start start_of(const std::string& text) {
  static MemoryFile nodes;
  Start start;
  std::istringstream lines(text);
  std::string line;
  while (std::getline(lines, line) && line != "--") {
    const std::size_t equals = line.find('=');
    const std::string name = line.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : line.substr(equals + 1);
    if (name == "central") {
      start.flags.central = true;
    } else if (name == "nodefile") {
      start.flags.nodefile = nodes.path();
    } else if (name == "index") {
      start.flags.index = static_cast<int>(std::strtoul(value.c_str(), nullptr, 10) % 65536);
    } else if (name == "together") {
      start.flags.takes_slots = true;
    } else if (name == "slots") {
      start.flags.slots = static_cast<int>(std::strtoul(value.c_str(), nullptr, 10) % 1025);
    } else {
      start.variables[name] = value.substr(0, value.find('\0'));
    }
  }
  const std::string rest(std::istreambuf_iterator<char>(lines), {});
  nodes.write(rest.data(), rest.size());
  return start;
}

}  // namespace

void rank_source(const Bytes& input) {
  const Start start = start_of(text_of(input));
  const tools::Environment environment = [&](const char* name) {
    const auto found = start.variables.find(name);
    return found == start.variables.end() ? nullptr : found->second.c_str();
  };
  // A number may stand for 65,536 ranks, and a list of a few letters for as many hosts.
  reads(input, std::size_t{1} << 18, [&] {
    const tools::RankSource source = tools::find_rank(start.flags, environment);
    const auto ranks = static_cast<int>(source.addresses.size());
    require(source.rank >= 0 && source.rank < ranks, "a rank is none of the run");
    require(source.slots.size() == source.addresses.size(), "slots are not one number a rank");
    const auto all = std::accumulate(source.slots.begin(), source.slots.end(), std::int64_t{0});
    require(source.computing_here >= 1 && source.computing_here <= all, "slots are miscounted");
    const int own = source.slots[static_cast<std::size_t>(source.rank)];
    require((start.flags.central && source.rank == 0) ||
                source.computing_before + own <= source.computing_here,
            "a rank's own slots are not among those of its machine");
    require(source.threads(4, 8) >= 1, "a rank has no thread");
  });
}

}  // namespace duplex::fuzz
