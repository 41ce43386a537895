// The simulation against the thesis's equations, where they are exact.
#include "tools/simulation/simulation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tools/equations.h"

namespace duplex::tools::simulation {
namespace {

using net::ServerMode;
using net::Sync;

constexpr double rate = 125e6, grad = 0.75;
constexpr int batches = 840;  ///< Divisible by 1 to 8.

/// Three tensors that 1 to 8 ranks can share to the element, on links without latency, with owners
/// that take no time: what the equations assume. `order`: that of the thesis.
Spec ideal(Sync sync, ServerMode server, int workers) {
  Spec spec;
  spec.topology = {server, server == ServerMode::central ? workers + 1 : workers, 0};
  spec.sync = sync;
  spec.overlap = false;
  spec.counts = {430080, 430080, 860160};
  spec.layers = {{0.1, 0.2, {0}}, {0.05, 0.1, {1, 2}}, {0.1, 0.2, {}}};
  const auto count = static_cast<std::size_t>(workers);
  spec.part.assign(count, sync == Sync::split ? 1.0 / workers : 1.0);
  spec.steps = sync == Sync::split ? 20 : static_cast<std::uint64_t>(batches / workers);
  spec.rates.assign(static_cast<std::size_t>(spec.topology.size), rate);
  spec.linger = std::chrono::nanoseconds(0);
  return spec;
}

/// Seconds for a transfer of all weights, with their headers.
double comm_of(const Spec& spec) {
  std::size_t bytes = 0;
  const net::ShardMap map = spec.topology.mode == ServerMode::central
                                ? net::ShardMap::central(spec.counts, 0)
                                : net::ShardMap::distributed(spec.counts, spec.topology.size,
                                                             net::Shards::even);
  for (std::size_t i = 0; i < map.chunks(); ++i) bytes += map[i].bytes() + net::header_bytes;
  return static_cast<double>(bytes) / rate;
}

double part_of(const Spec& spec) {
  return spec.sync == Sync::split ? grad * spec.part[0] : grad;
}

void expect_near(double simulated, double exact, const std::string& what) {
  EXPECT_NEAR(simulated / exact, 1.0, 1e-6) << what << ": " << simulated << " for " << exact;
}

TEST(Simulation, DistributedIterationsAreThoseOfTheEquation) {
  for (const Sync sync : {Sync::join, Sync::split, Sync::none}) {
    for (int n = 1; n <= 8; ++n) {
      const Spec spec = ideal(sync, ServerMode::distributed, n);
      const double exact = static_cast<double>(spec.steps) *
                           sync_distributed({comm_of(spec), part_of(spec)}, n);  // (4.12), (4.21)
      expect_near(simulate(spec, nullptr).trained, exact, "N = " + std::to_string(n));
    }
  }
}

TEST(Simulation, CentralIterationsAtOnceAreTheWorst) {
  for (const Sync sync : {Sync::join, Sync::split, Sync::none}) {
    for (int n = 1; n <= 8; ++n) {
      const Spec spec = ideal(sync, ServerMode::central, n);
      const double exact = static_cast<double>(spec.steps) *
                           sync_central_worst({comm_of(spec), part_of(spec)}, n);  // (4.7), (4.16)
      expect_near(simulate(spec, nullptr).trained, exact, "N = " + std::to_string(n));
    }
  }
}

TEST(Simulation, CentralIterationsInTurnsAreTheBest) {
  for (const Sync sync : {Sync::join, Sync::split}) {
    for (int n = 1; n <= 8; ++n) {
      Spec spec = ideal(sync, ServerMode::central, n);
      spec.semaphore = true;
      const double exact = static_cast<double>(spec.steps) *
                           sync_central_best({comm_of(spec), part_of(spec)}, n);  // (4.4)
      expect_near(simulate(spec, nullptr).trained, exact, "N = " + std::to_string(n));
    }
  }
}

/// Where the link is always busy, and where the workers are (4.13)-(4.15).
TEST(Simulation, AsynchronousTurnsAreTheBest) {
  for (const double slower : {1.0, 40.0}) {
    for (int n = 1; n <= 8; ++n) {
      Spec spec = ideal(Sync::none, ServerMode::central, n);
      spec.semaphore = true;
      for (double& each : spec.rates) each /= slower;
      const Costs costs{comm_of(spec) * slower, grad};
      const double exact = async_central_best(costs, n, batches);
      expect_near(simulate(spec, nullptr).trained, exact,
                  "N = " + std::to_string(n) + ", slower " + std::to_string(slower));
    }
  }
}

}  // namespace
}  // namespace duplex::tools::simulation
