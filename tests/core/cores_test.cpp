// Tests that cores are dealt out by NUMA node, the hardware threads of a core together, and that
// threads stay on theirs.
#include "core/processor/cores.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "tests/temporary_folder.h"

namespace duplex {
namespace {

std::vector<int> allowed() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  std::vector<int> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) cores.push_back(cpu);
  return cores;
}

TEST(Cores, AreInTheOrderInWhichTheyLieTogether) {
  const std::vector<int> own = allowed();
  if (own.size() < 2) GTEST_SKIP() << "this process may use one core only";
  // The first core that it may use is on node 1, all others on node 0.
  const TemporaryFolder system;
  for (const int cpu : own) {
    const std::string folder = system / ("cpu/cpu" + std::to_string(cpu));
    std::filesystem::create_directories(folder + "/topology");
    std::filesystem::create_directories(folder + (cpu == own[0] ? "/node1" : "/node0"));
    std::ofstream(folder + "/topology/core_id") << cpu << "\n";
  }
  std::vector<int> expected(own.begin() + 1, own.end());
  expected.push_back(own[0]);
  EXPECT_EQ(cores_in_order(system.path()), expected);
  EXPECT_EQ(cores_in_order(system / "none"), own);
}

TEST(Cores, AreDealtOutInRuns) {
  EXPECT_EQ(core_shares({4, 5, 0, 1, 7}, 2), (std::vector<std::vector<int>>{{4, 5, 0}, {1, 7}}));
  EXPECT_EQ(core_shares({3, 2}, 2), (std::vector<std::vector<int>>{{3}, {2}}));
}

TEST(Cores, BoundWorkStaysOnItsOwn) {
  const std::vector<int> own = allowed();
  std::vector<int> seen;
  run_bound({own.back()}, [&] { seen = allowed(); });
  EXPECT_EQ(seen, std::vector<int>{own.back()});
  EXPECT_EQ(allowed(), own);
  EXPECT_THROW(run_bound({}, [] { throw std::runtime_error("failed"); }), std::runtime_error);
}

}  // namespace
}  // namespace duplex
