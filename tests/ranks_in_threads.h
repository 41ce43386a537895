// A run of several ranks in one process, over real loopback sockets: a thread for each rank.
#pragma once
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "net/rendezvous/mesh.h"

namespace duplex::net {

inline Identity test_identity() {
  return {"test", fingerprint("model"), fingerprint("data"), fingerprint("settings"),
          fingerprint("start")};
}

/// Mesh specs for all ranks, with listeners on ports that are free.
struct Ports {
  explicit Ports(const Topology& topology) {
    for (int rank = 0; rank < topology.size; ++rank) {
      listeners.push_back(Listener::open({"127.0.0.1", 0}));
      addresses.push_back({"127.0.0.1", listeners.back().port()});
    }
  }
  std::vector<Listener> listeners;
  std::vector<Address> addresses;
};

/// The end of a rank: whether it went well, or the error.
struct Outcome {
  bool ok = false;
  Exit code = Exit::ok;
  std::string message;
  double seconds = 0;
};

/// Runs `body(rank, mesh spec, listener)` for every rank, each in a thread, to the end of all.
inline std::vector<Outcome> run_ranks(
    const Topology& topology, const std::function<void(int, MeshSpec, Listener)>& body,
    std::chrono::milliseconds timeout = std::chrono::seconds(20)) {
  Ports ports(topology);
  std::vector<Outcome> outcomes(static_cast<std::size_t>(topology.size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < topology.size; ++rank) {
    MeshSpec spec;
    spec.topology = topology;
    spec.rank = rank;
    spec.addresses = ports.addresses;
    spec.identity = test_identity();
    spec.timeout = timeout;
    threads.emplace_back([&, rank, spec] {
      const auto r = static_cast<std::size_t>(rank);
      Outcome& outcome = outcomes[r];
      const auto start = Clock::now();
      try {
        body(rank, spec, std::move(ports.listeners[r]));
        outcome.ok = true;
      } catch (const Error& error) {
        outcome.code = error.code;
        outcome.message = error.what();
      }
      outcome.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

}  // namespace duplex::net
