#include "net/rendezvous/mesh.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "core/clock.h"
#include "net/rendezvous/host_names.h"
#include "net/rendezvous/refusal.h"
#include "net/rendezvous/rendezvous.h"

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
  if (spec.protection.seal == ProtectionSpec::Seal::always && spec.key.empty())
    throw Error(
        "frames cannot be sealed without a cluster key: make one with `duplex keygen FILE` "
        "and give every rank --key FILE",
        Exit::usage);
  check_names(topology, spec.rank, spec.addresses, loopback_behind);
}

}  // namespace

Self self_of(const MeshSpec& spec) {
  Self self;
  self.rank = spec.rank;
  self.size = spec.topology.size;
  self.identity = spec.identity;
  self.key = spec.key;
  self.protection = spec.protection;
  self.epoch_ns = clock_ns();
  return self;
}

Mesh Mesh::join(MeshSpec spec, Listener listener) {
  check(spec);
  Mesh mesh;
  mesh.rank_ = spec.rank;
  mesh.topology_ = spec.topology;
  Rendezvous rendezvous(spec, listener);
  mesh.links_ = rendezvous.run();
  mesh.coordinator_time_ = rendezvous.coordinator_time();
  if (spec.takes_back && listener)
    mesh.door_ = std::make_unique<Door>(std::move(spec), std::move(listener),
                                        mesh.coordinator_time_.epoch_ns);
  return mesh;
}

std::optional<Link> Door::next(const std::function<bool(int)>& awaited,
                               const std::function<bool()>& over) {
  if (came_.empty()) came_ = Rendezvous(spec_, listener_, {awaited, over, epoch_ns_}).run_late();
  if (came_.empty()) return std::nullopt;
  Link link = std::move(came_.back());
  came_.pop_back();
  return link;
}

void Mesh::tell_cannot_start(const MeshSpec& spec, const AbortReason& reason) noexcept {
  try {
    const auto limit = std::min(refusal_limit, spec.timeout);
    if (spec.log)
      spec.log("cannot start, and tells the others, for at most " +
               std::to_string(limit.count() / 1000) + " s: " + reason.text);
    Listener none;
    tell_refusal(spec, reason, spec.topology.peers_of(spec.rank), none, Clock::now() + limit);
  } catch (...) {  // There is no memory for it; the peers will notice that nobody comes.
  }
}

Mesh Mesh::of(const Topology& topology, int rank, std::vector<Link> links) {
  Mesh mesh;
  mesh.rank_ = rank;
  mesh.topology_ = topology;
  mesh.links_ = std::move(links);
  mesh.coordinator_time_.epoch_ns = clock_ns();
  return mesh;
}

}  // namespace duplex::net
