#include "tools/launch/nodefile.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <map>
#include <system_error>

#include "core/error.h"

namespace duplex::tools {

std::vector<net::Address> read_nodefile(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    throw Error("nodefile " + path + " cannot be read: " + std::generic_category().message(errno),
                Exit::usage);
  }
  std::vector<net::Address> nodes;
  std::vector<int> lines;
  std::map<std::string, std::uint16_t> next_port;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    const std::string place = path + ":" + std::to_string(number) + ": ";
    line = line.substr(0, line.find('#'));
    const auto first = line.find_first_not_of(" \t\r");
    if (first == std::string::npos) continue;
    line = line.substr(first, line.find_last_not_of(" \t\r") - first + 1);
    const auto refuse = [&] {
      return Error(place + "expected host, host:port or host slots=N, not '" + line + "'",
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
    if (node.port != 0 && slots > 1) throw refuse();
    const bool has_port = node.port != 0;
    for (int slot = 0; slot < slots; ++slot) {
      if (!has_port) {
        const auto port = next_port.emplace(node.host, default_port).first;
        node.port = port->second++;
      }
      const auto same = std::find_if(nodes.begin(), nodes.end(), [&](const net::Address& other) {
        return other.host == node.host && other.port == node.port;
      });
      if (same != nodes.end()) {
        const auto other = static_cast<std::size_t>(same - nodes.begin());
        throw Error(place + node.str() + " is rank " + std::to_string(other) +
                        " already, in line " + std::to_string(lines[other]),
                    Exit::usage);
      }
      nodes.push_back(node);
      lines.push_back(number);
    }
  }
  if (nodes.empty()) throw Error("nodefile " + path + " names no machine", Exit::usage);
  return nodes;
}

}  // namespace duplex::tools
