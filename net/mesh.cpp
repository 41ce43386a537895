#include "net/mesh.h"

#include <set>
#include <utility>

#include "net/gathering.h"
#include "net/names.h"

namespace duplex::net {
namespace {

void check(const MeshSpec& spec) {
  const Topology& topology = spec.topology;
  const auto known = [&](int rank) { return rank >= 0 && rank < topology.size; };
  if (!known(spec.rank) || !known(topology.server))
    throw Error("rank " + std::to_string(known(spec.rank) ? topology.server : spec.rank) +
                    " in a run of " + std::to_string(topology.size) + " ranks",
                Exit::usage);
  if (spec.addresses.size() != static_cast<std::size_t>(topology.size))
    throw Error(std::to_string(spec.addresses.size()) + " addresses for " +
                    std::to_string(topology.size) + " ranks",
                Exit::usage);
  std::set<std::pair<std::string, std::uint16_t>> seen;
  for (int rank = 0; rank < topology.size; ++rank) {
    const Address& address = spec.addresses[static_cast<std::size_t>(rank)];
    if (topology.is_owner(rank) && address.port != 0 &&
        !seen.insert({address.host, address.port}).second)
      throw Error("two ranks have the address " + address.str() + ", rank " + std::to_string(rank) +
                      " and one before it: give each its own port",
                  Exit::usage);
  }
  check_names(topology, spec.rank, spec.addresses, loopback_behind);
}

}  // namespace

Mesh Mesh::join(MeshSpec spec, Listener listener) {
  check(spec);
  Mesh mesh;
  mesh.rank_ = spec.rank;
  mesh.topology_ = spec.topology;
  Gathering gathering(spec, listener);
  mesh.links_ = gathering.run();
  mesh.hub_time_ = gathering.hub_time();
  return mesh;
}

Mesh Mesh::alone() {
  Mesh mesh;
  mesh.hub_time_.epoch_ns = now_ns();
  return mesh;
}

}  // namespace duplex::net
