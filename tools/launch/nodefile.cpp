#include "tools/launch/nodefile.h"

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <map>
#include <system_error>

#include "core/error.h"
#include "net/topology/topology.h"

namespace duplex::tools {
namespace {

constexpr int last_port = 65535;

/// The rank that has an address already, and the line that says so.
struct Taken {
  std::size_t rank;
  int line;
};

}  // namespace

std::vector<Node> read_nodes(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    throw Error("nodefile " + path + " cannot be read: " + std::generic_category().message(errno),
                Exit::usage);
  }
  std::vector<Node> nodes;
  std::map<std::string, Taken> taken;
  std::map<std::string, int> next_port;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    const std::string place = path + ":" + std::to_string(number) + ": ";
    line = line.substr(0, line.find('#'));
    const auto first = line.find_first_not_of(" \t\r");
    if (first == std::string::npos) continue;
    line = line.substr(first, line.find_last_not_of(" \t\r") - first + 1);
    const auto refuse = [&] {
      return Error(place + "expected host or host:port, and slots=N, not '" + line + "'",
                   Exit::usage);
    };
    const auto space = line.find_first_of(" \t");
    int slots = 1;
    if (space != std::string::npos) {
      const std::string rest = line.substr(line.find_first_not_of(" \t", space));
      char* end = nullptr;
      const long count = rest.rfind("slots=", 0) == 0 ? std::strtol(rest.c_str() + 6, &end, 10) : 0;
      if (end == nullptr || *end != '\0' || count < 1 || count > 1024) throw refuse();
      slots = static_cast<int>(count);
    }
    net::Address node;
    try {
      node = net::Address::parse(line.substr(0, space), 0);
    } catch (const Error& error) {
      throw Error(place + error.what(), Exit::usage);
    }
    const bool has_port = node.port != 0;
    nodes.push_back({node, slots});
    for (int slot = 0; slot < slots; ++slot) {
      if (has_port && slot > 0 && ++node.port == 0)
        throw Error(place + node.host + " has more slots than ports", Exit::usage);
      if (!has_port) {
        int& port = next_port.emplace(node.host, default_port).first->second;
        if (port > last_port)
          throw Error(place + node.host + " has more ranks than ports", Exit::usage);
        node.port = static_cast<std::uint16_t>(port++);
      }
      if (slot == 0) nodes.back().address = node;
      if (taken.size() == net::most_ranks)
        throw Error(place + "there are more than " + std::to_string(net::most_ranks) + " ranks",
                    Exit::usage);
      const auto [same, added] = taken.insert({node.str(), {taken.size(), number}});
      if (!added) {
        throw Error(place + node.str() + " is rank " + std::to_string(same->second.rank) +
                        " already, in line " + std::to_string(same->second.line),
                    Exit::usage);
      }
    }
  }
  if (nodes.empty()) throw Error("nodefile " + path + " names no machine", Exit::usage);
  return nodes;
}

std::vector<Node> ranks_of(const std::vector<Node>& nodes, bool together, bool central) {
  std::vector<Node> ranks;
  const auto add = [&](Node node, int from, int slots) {
    node.address.port = static_cast<std::uint16_t>(node.address.port + from);
    node.slots = slots;
    ranks.push_back(node);
  };
  for (const Node& node : nodes) {
    const int apart = !together ? node.slots : central && ranks.empty() ? 1 : 0;
    for (int slot = 0; slot < apart; ++slot) add(node, slot, 1);
    if (apart < node.slots) add(node, apart, node.slots - apart);
  }
  return ranks;
}

std::vector<net::Address> addresses_of(const std::vector<Node>& ranks) {
  std::vector<net::Address> addresses;
  for (const Node& rank : ranks) addresses.push_back(rank.address);
  return addresses;
}

}  // namespace duplex::tools
