// Tests the simulation against the thesis's equations where these are exact.
#include "tools/simulation/simulation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "net/connection/receive_window.h"
#include "tools/prediction/equations.h"
#include "tools/simulation/fluid.h"
#include "tools/simulation/queues.h"
#include "tools/simulation/share.h"

namespace duplex::tools::simulation {
namespace {

using net::ServerMode;
using net::Sync;

constexpr double rate = 125e6, grad = 0.75;
constexpr int batches = 840;  ///< A number that 1 to 8 divide.

/// Has what the equations assume: three tensors that 1 to 8 ranks can share to the element, links
/// without latency, and owners that take no time. The order is the thesis's.
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

/// Returns the seconds for a transfer of all weights, with their headers.
double comm_of(const Spec& spec) {
  std::size_t bytes = 0;
  const net::ShardMap map =
      spec.topology.mode == ServerMode::central
          ? net::ShardMap::central(spec.counts, 0)
          : net::ShardMap::distributed(spec.counts, spec.topology.size, net::Shards::even);
  for (std::size_t i = 0; i < map.chunks(); ++i)
    bytes += net::frame_bytes(spec.protection(), map[i].bytes());
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

TEST(Simulation, SealingCostsBytesOnTheLinkAndTimeOfComputing) {
  const int n = 4;
  Spec spec = ideal(Sync::join, ServerMode::distributed, n);
  const double plain = comm_of(spec);
  spec.seal_rate = 1e9;
  const double comm = comm_of(spec), all = comm * rate;
  EXPECT_GT(comm, plain);
  // A worker sends and receives the other ranks' shares, and its own three times.
  const double sealing = 4.0 * (n - 1) / n * all / spec.seal_rate;
  const double exact =
      static_cast<double>(spec.steps) * sync_distributed({comm, grad + sealing}, n);
  expect_near(simulate(spec, nullptr).trained, exact, "sealed");
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

/// Tests a link that is always busy, and workers that are (4.13)-(4.15).
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

TEST(Simulation, LatencyCountsOnceAWay) {
  Spec spec = ideal(Sync::join, ServerMode::distributed, 4);
  spec.latency = 0.125;
  const double exact = static_cast<double>(spec.steps) *
                       (sync_distributed({comm_of(spec), grad}, 4) + 2 * spec.latency);
  expect_near(simulate(spec, nullptr).trained, exact, "latency");
}

TEST(Simulation, OwnersTakeTheirTime) {
  Spec spec = ideal(Sync::join, ServerMode::central, 2);
  spec.counts = {30000};  // That is one chunk.
  spec.layers = {{0.25, 0.5, {0}}};
  spec.owner_rate = 1e6;
  const double iteration = sync_central_worst({comm_of(spec), grad}, 2) +
                           2 * 120000.0 / spec.owner_rate;  // The owner adds it and updates by it.
  expect_near(simulate(spec, nullptr).trained, static_cast<double>(spec.steps) * iteration,
              "an addition and an update");
}

/// An owner works on one chunk at a time, since memory bounds it, however many chunks there are.
TEST(Simulation, OwnersWorkOnAChunkAtATime) {
  for (const auto& [sync, passes] : {std::pair(Sync::join, 1), std::pair(Sync::none, 2)}) {
    Spec spec = ideal(sync, ServerMode::distributed, 1);
    spec.owner_rate = 1e8;
    const std::size_t elements =
        std::accumulate(spec.counts.begin(), spec.counts.end(), std::size_t{0});
    const double iteration =
        grad + passes * static_cast<double>(elements * sizeof(float)) / spec.owner_rate;
    expect_near(simulate(spec, nullptr).trained, static_cast<double>(spec.steps) * iteration,
                "updates one after another");
  }
}

TEST(Simulation, EverybodyWaitsForTheSlowestUnlessAsynchronous) {
  for (const Sync sync : {Sync::join, Sync::none}) {
    Spec spec = ideal(sync, ServerMode::distributed, 4);
    for (double& each : spec.rates) each = 1e15;
    spec.straggler_factor = [](int rank, std::uint64_t) { return rank == 2 ? 3.0 : 1.0; };
    const Outcome outcome = simulate(spec, nullptr);
    const auto steps = static_cast<double>(spec.steps);
    expect_near(outcome.steps[2].back().end, 3 * grad * steps, "the slow one");
    // They wait before every step but the first.
    const double waits = sync == Sync::none ? 0.0 : 2 * grad;
    expect_near(outcome.steps[1].back().end, grad * steps + waits * (steps - 1), "others");
  }
}

TEST(Simulation, AveragingMovesWeightsOnceARound) {
  Spec spec = ideal(Sync::join, ServerMode::distributed, 4);
  spec.overlap = true;
  spec.layers = {{0.25, 0.5, {0, 1, 2}}};  // Nothing is computed during transfers.
  spec.average = 7;
  spec.steps = 28;
  const double c = comm_of(spec);
  // A round takes two transfers, and at its end a wait for the last chunk's weights.
  const double took = simulate(spec, nullptr).trained - 28 * grad;
  EXPECT_GE(took, 4 * 2 * c * 3 / 4);
  EXPECT_LT(took, 4 * 2 * c * 3 / 4 + 4 * 0.25 * c);
}

/// Without more room a central server keeps one copy of the gradients that come before their turn.
/// The other workers' wait for the first worker's to arrive, while the link has nothing to do.
TEST(Simulation, AServerHoldsWhatItHasRoomFor) {
  Spec spec = ideal(Sync::join, ServerMode::central, 4);
  spec.steps = 1;
  const double c = comm_of(spec), slow = 10 * c + grad;
  // If a second worker comes when there is no room any more, it can send once the first one's
  // gradients are there.
  for (const double second : {grad, 5 * c + grad}) {
    spec.straggler_factor = [=](int rank, std::uint64_t) {
      return (rank == 1 ? slow : rank == 2 ? second : grad) / grad;
    };
    spec.early_bytes = 0;
    // The others have sent one copy meanwhile; two copies, and the first worker's, are left.
    EXPECT_NEAR(simulate(spec, nullptr).trained, 4 * c + slow + 3 * c, 0.05 * c);
    spec.early_bytes = std::size_t{64} << 20;
    EXPECT_NEAR(simulate(spec, nullptr).trained, 4 * c + slow + c, 0.05 * c);
  }
}

/// Workers that use a server's link at once do so for ever if their connections are alike. If they
/// are not, the workers drift apart, since the first to come is the first to be through.
TEST(Simulation, AsynchronousWorkersPart) {
  Spec spec = ideal(Sync::none, ServerMode::central, 4);
  for (double& each : spec.rates) each /= 10;  // On faster links there is little to part for.
  spec.queue = 6e6;
  const Costs costs{10 * comm_of(spec), grad};
  const double worst = async_central_worst(costs, 4, batches);
  EXPECT_NEAR(simulate(spec, nullptr).trained, worst, 0.01 * worst);
  spec.unfairness = 0.08;
  const double parted = simulate(spec, nullptr).trained;
  EXPECT_LT(parted, 0.9 * worst);
  EXPECT_GT(parted, async_central_best(costs, 4, batches));
}

/// A worker is lost in the middle of a step, and one of those that train its batches, too.
TEST(Simulation, OthersTrainWhatALostWorkerHasLeft) {
  for (const bool overlap : {false, true}) {
    Spec spec = ideal(Sync::none, ServerMode::central, 4);
    spec.overlap = overlap;
    spec.steps = 20;
    const double whole = simulate(spec, nullptr).trained;
    spec.losses = {{2, 0.4 * whole}, {3, 1.01 * whole}};
    const Outcome outcome = simulate(spec, nullptr);
    EXPECT_FALSE(outcome.failure) << *outcome.failure;
    EXPECT_EQ(outcome.lost, (std::vector<int>{2, 3}));
    EXPECT_GT(outcome.trained, whole);
    EXPECT_EQ(outcome.staleness.size(), 4 * spec.steps);
    const std::size_t chunks = net::ShardMap::central(spec.counts, 0).chunks();
    for (const net::Store::Staleness& step : outcome.staleness)
      EXPECT_EQ(step.chunks, chunks) << "step " << step.step << " of worker " << step.worker;
  }
}

/// A window begins where TCP's slow start ends, and grows by a twentieth of the bytes sent, until
/// it reaches the receiving rank's limit, or its part of the bytes that the port holds.
TEST(Share, AWindowGrowsToItsBound) {
  Spec spec = ideal(Sync::none, ServerMode::distributed, 4);
  spec.unfairness = 1e-3;
  const double let = static_cast<double>(*net::window_of(3, false, false));
  for (const double queue : {9.0 * let, 1.5 * let}) {
    spec.queue = queue;
    Share share(spec, 1, 3, 3.0, 7);
    const double first = share.waiting(), most = std::min(let, queue / 3), frame = 64 << 10;
    EXPECT_LT(first, most);
    share.sent(frame, false);
    EXPECT_NEAR(share.waiting(), first + frame / 20, 1.0);
    for (double sent = frame; sent < 20 * (most - first); sent += frame) share.sent(frame, false);
    EXPECT_EQ(share.waiting(), most);
  }
}

/// A connection that begins to send waits, on average, behind those of the others' bytes that came
/// to the port before. One whose bytes are among them already does not wait.
TEST(Queues, WhoBeginsWaitsBehindWhatOthersHaveInThePort) {
  Spec spec = ideal(Sync::none, ServerMode::central, 3);
  spec.queue = 6e6;
  const std::vector<Queues::Ends> ends{{1, 0}, {2, 0}, {3, 0}};
  for (const double unfairness : {0.0, 1e-3}) {
    spec.unfairness = unfairness;
    const double differ = unfairness > 0.0 ? 1.0 : 0.0;  // Connections that are alike do not wait.
    Fluid fluid;
    const auto in = fluid.add_port(rate);
    for (std::size_t i = 0; i < ends.size(); ++i) fluid.add_flow(fluid.add_port(rate), in);
    Queues queues(spec, net::ShardMap::central(spec.counts, 0), ends, fluid);
    queues.hand_over(0, 64e3);
    queues.hand_over(1, 16e3);
    EXPECT_EQ(queues.behind(0, 1.0), 0.0);
    EXPECT_EQ(queues.let_through(0).size(), 3 * differ);
    queues.begin(0, 1.0);
    EXPECT_TRUE(queues.let_through(0).empty() || differ == 0.0);
    EXPECT_EQ(queues.behind(0, 2.0), 0.0);
    // The first connection's link has filled no more of the port yet; later all bytes that were
    // handed over are there.
    EXPECT_NEAR(queues.behind(1, 1.0 + 8e3 / rate), differ * 8e3 / 2 / rate, 1e-12);
    EXPECT_NEAR(queues.behind(1, 1.0 + 16e3 / rate), differ * 16e3 / 2 / rate, 1e-12);
    queues.sent(0, 60e3);
    EXPECT_NEAR(queues.behind(1, 2.0), differ * 4e3 / 2 / rate, 1e-12);
    queues.begin(1, 2.0);
    EXPECT_NEAR(queues.behind(2, 3.0), differ * 20e3 * 2 / 3 / rate, 1e-12);
    // The port holds no more than a window of it, which a dedicated server bounds.
    queues.hand_over(0, 1e9);
    const double most = queues.behind(2, 3.0);
    EXPECT_EQ(queues.behind(2, 30.0), most);
    EXPECT_LE(most, (static_cast<double>(*net::window_of(3, true, false)) + 16e3) * 2 / 3 / rate);
    queues.pause(0);
    EXPECT_NEAR(queues.behind(2, 3.0), differ * 16e3 / 2 / rate, 1e-12);
    queues.hold(1);
    EXPECT_EQ(queues.behind(2, 3.0), 0.0);
    EXPECT_EQ(queues.let_through(0).size(), 3 * differ);
  }
}

/// Three flows use two links of 1 and 2 bytes a second, one of them both links (Bertsekas and
/// Gallager's example), with equal weights and with different ones.
TEST(Fluid, SharesMaxMinFairly) {
  for (const double weight : {1.0, 3.0}) {
    Fluid fluid;
    const auto first = fluid.add_port(1.0), second = fluid.add_port(2.0),
               wide = fluid.add_port(9.0);
    const auto a = fluid.add_flow(first, wide), b = fluid.add_flow(first, second);
    const auto other = fluid.add_port(9.0);
    const auto c = fluid.add_flow(other, second);
    fluid.set_weight(b, weight);
    const double through = weight / (weight + 1);  // The rate of flow b.
    fluid.carry(a, (1 - through) * 2, 0.0);
    fluid.carry(b, through * 3, 0.0);
    fluid.carry(c, (2 - through) * 1, 0.0);
    fluid.share(0.0);
    for (const auto& [flow, at] : {std::pair{c, 1.0}, std::pair{a, 2.0}, std::pair{b, 3.0}}) {
      EXPECT_NEAR(fluid.next_end(), at, 1e-12);
      EXPECT_EQ(fluid.take_ended(), flow);
      fluid.carry(flow, 1e9, at);  // The flow goes on, so the others' rates stay.
    }
  }
}

/// The others have the rate that a flow does not use.
TEST(Fluid, GivesAwayWhatIsFree) {
  Fluid fluid;
  const auto from = fluid.add_port(1.0), to = fluid.add_port(1.0), elsewhere = fluid.add_port(1.0);
  const auto a = fluid.add_flow(from, to), b = fluid.add_flow(from, elsewhere);
  fluid.carry(a, 1.0, 0.0);
  fluid.carry(b, 2.0, 0.0);
  fluid.share(0.0);
  EXPECT_NEAR(fluid.next_end(), 2.0, 1e-12);
  fluid.stop(fluid.take_ended(), 2.0);
  fluid.share(2.0);
  EXPECT_NEAR(fluid.next_end(), 3.0, 1e-12);
  EXPECT_EQ(fluid.take_ended(), b);
}

/// A link that saves 3 bytes while it is idle lets them pass at once; it does not save while it is
/// used, and a flow over two links has what both have saved.
TEST(Fluid, LetsPassAtOnceWhatAPortHasSaved) {
  Fluid fluid;
  const auto from = fluid.add_port(1.0, 3.0), to = fluid.add_port(1.0, 3.0),
             cable = fluid.add_port(1.0);
  const auto saves = fluid.add_flow(from, to), other = fluid.add_flow(from, cable);
  const auto takes = [&](auto flow, double bytes, double now) {
    fluid.carry(flow, bytes, now);
    fluid.share(now);
    const double end = fluid.next_end();
    EXPECT_EQ(fluid.take_ended(), flow);
    return end - now;
  };
  EXPECT_NEAR(takes(saves, 5.0, 0.0), 2.0, 1e-12);
  EXPECT_NEAR(takes(saves, 5.0, 2.0), 5.0, 1e-12);  // It goes on.
  fluid.stop(saves, 7.0);
  EXPECT_NEAR(takes(saves, 5.0, 9.0), 3.0, 1e-12);  // Idle for 2 seconds.
  fluid.stop(saves, 12.0);
  EXPECT_NEAR(takes(other, 5.0, 100.0), 5.0, 1e-12);
  fluid.stop(other, 105.0);
  EXPECT_NEAR(takes(saves, 2.0, 105.0), 0.0, 1e-12);  // The other one used nothing of it.
}

}  // namespace
}  // namespace duplex::tools::simulation
