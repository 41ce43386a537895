// Tests what moving bytes and adding gradients takes from computing in a simulated run.
#include "tools/simulation/processors.h"

#include <gtest/gtest.h>

#include "tools/simulation/simulation.h"

namespace duplex::tools::simulation {
namespace {

/// Ranks on machines of so many cores; a byte takes a second to send and two to receive.
Spec on_machines(std::vector<int> machine_of, double cores, double threads) {
  Spec spec;
  spec.machine_of = std::move(machine_of);
  spec.cores.assign(static_cast<std::size_t>(spec.machine_of.back()) + 1, cores);
  spec.threads = threads;
  spec.moving = {1.0, 2.0};
  return spec;
}

TEST(Processors, ACoreThatIsIdleCostsNobodyAnything) {
  const Spec spec = on_machines({0, 0}, 2.0, 1.0);
  Processors processors(spec);
  processors.sent(0, 3.0);  // Nobody computes.
  processors.compute(0, true);
  EXPECT_EQ(processors.owed(0), 0.0);
  processors.sent(0, 3.0);
  processors.received(1, 3.0);
  EXPECT_EQ(processors.owed(0), 0.0);
}

TEST(Processors, RanksThatComputeOnAFullMachinePayInEqualParts) {
  const Spec spec = on_machines({0, 0, 1}, 2.0, 1.0);
  Processors processors(spec);
  for (int rank = 0; rank < 3; ++rank) processors.compute(rank, true);
  processors.sent(0, 3.0);
  processors.received(1, 4.0);
  EXPECT_DOUBLE_EQ(processors.owed(0), (3.0 + 8.0) / 2);
  EXPECT_DOUBLE_EQ(processors.owed(1), (3.0 + 8.0) / 2);
  EXPECT_EQ(processors.owed(0), 0.0);
  EXPECT_EQ(processors.owed(2), 0.0);  // It has a machine with an idle core.
  processors.compute(1, false);
  processors.take(0, 5.0);
  EXPECT_EQ(processors.owed(0), 0.0);
}

TEST(Processors, ThreadsOfARankShareWhatItOwes) {
  const Spec spec = on_machines({0}, 4.0, 4.0);
  Processors processors(spec);
  processors.compute(0, true);
  processors.take(0, 1.0);
  EXPECT_DOUBLE_EQ(processors.owed(0), 0.25);
}

TEST(Processors, IdleCoresReadImagesFirst) {
  // A step of 2 s on 2 of 4 cores leaves 4 processor seconds for reading.
  EXPECT_EQ(delay_by_reading(4.0, 2.0, 2.0, 4.0), 0.0);
  // With 8 it is all cores' work: 2 * 2 + 8 seconds on 4 cores take 3.
  EXPECT_DOUBLE_EQ(delay_by_reading(8.0, 2.0, 2.0, 4.0), 1.0);
  // Where all cores compute, reading delays it at once.
  EXPECT_DOUBLE_EQ(delay_by_reading(1.0, 2.0, 4.0, 4.0), 0.25);
  EXPECT_DOUBLE_EQ(delay_by_reading(1.0, 2.0, 8.0, 4.0), 0.25);
}

/// Two workers on one machine of 2 cores, which compute 1 s and read for 3 s each: that is 8
/// processor seconds for both, and so 4 s a step.
TEST(Processors, WorkersOfAMachineReadWithTheSameCores) {
  Spec spec = on_machines({0, 0}, 2.0, 1.0);
  spec.topology = {net::ServerMode::distributed, 2, 0};
  Processors processors(spec);
  for (int rank = 0; rank < 2; ++rank) processors.read(rank, 3.0, 1.0);
  for (int rank = 0; rank < 2; ++rank) EXPECT_DOUBLE_EQ(1.0 + processors.owed(rank), 4.0);
}

/// A worker computes 0.6 s a step; its weights come while it computes the first layer forward, and
/// its gradient leaves while it computes that layer backward.
TEST(Processors, AStepTakesLongerByWhatIsMovedMeanwhile) {
  Spec spec;
  spec.topology = {net::ServerMode::central, 2, 0};
  spec.counts = {1 << 20};
  spec.layers = {{0.1, 0.2, {}}, {0.1, 0.2, {0}}};
  spec.part = {1.0};
  spec.steps = 10;
  spec.rates = {1e9, 1e9};
  const auto step = [&] {
    const auto steps = simulate(spec, nullptr).steps[0];
    return steps[7].end - steps[6].end;
  };
  EXPECT_NEAR(step(), 0.6, 1e-9);
  spec.machine_of = {0, 1};
  spec.cores = {1.0, 1.0};
  spec.moving = {2e-9, 5e-9};
  const net::ShardMap map = net::ShardMap::central(spec.counts, 0);
  double bytes = 0.0;
  for (std::size_t i = 0; i < map.chunks(); ++i)
    bytes += static_cast<double>(net::frame_bytes(spec.protection(), map[i].bytes()));
  EXPECT_NEAR(step(), 0.6 + bytes * (2e-9 + 5e-9), 1e-9);
  // The server's end counts where it has the same machine.
  spec.machine_of = {0, 0};
  spec.cores = {1.0};
  EXPECT_NEAR(step(), 0.6 + 2.0 * bytes * (2e-9 + 5e-9), 1e-9);
  spec.cores = {2.0};
  EXPECT_NEAR(step(), 0.6, 1e-9);
}

}  // namespace
}  // namespace duplex::tools::simulation
