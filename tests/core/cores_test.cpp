// Tests that cores are dealt out by NUMA node, the hardware threads of a core together, and that
// threads stay on theirs.
#include "core/processor/cores.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "tests/temporary_folder.h"

namespace duplex {
namespace {

/// Hardware threads 0 and 2 are one core, 1 and 3 another; 0 and 2 are on node 1.
TEST(Cores, AreInTheOrderInWhichTheyLieTogether) {
  const TemporaryFolder system;
  for (const int cpu : {0, 1, 2, 3}) {
    const std::string folder = system / ("cpu/cpu" + std::to_string(cpu));
    std::filesystem::create_directories(folder + "/topology");
    std::filesystem::create_directories(folder + (cpu % 2 == 0 ? "/node1" : "/node0"));
    std::ofstream(folder + "/topology/core_id") << cpu % 2 << "\n";
  }
  EXPECT_EQ(in_order({0, 1, 2, 3}, system.path()), (std::vector<int>{1, 3, 0, 2}));
  EXPECT_EQ(in_order({3, 2, 5}, system.path()), (std::vector<int>{3, 5, 2}));
  EXPECT_EQ(in_order({5, 4}, system / "none"), (std::vector<int>{4, 5}));
}

TEST(Cores, AreDealtOutInRuns) {
  EXPECT_EQ(core_shares({4, 5, 0, 1, 7}, 2), (std::vector<std::vector<int>>{{4, 5, 0}, {1, 7}}));
  EXPECT_EQ(core_shares({3, 2}, 2), (std::vector<std::vector<int>>{{3}, {2}}));
}

TEST(Cores, BoundWorkStaysOnItsOwn) {
  const std::vector<int> own = own_cores();
  std::vector<int> seen;
  run_bound({own.back()}, [&] { seen = own_cores(); });
  EXPECT_EQ(seen, std::vector<int>{own.back()});
  EXPECT_EQ(own_cores(), own);
  EXPECT_THROW(run_bound({}, [] { throw std::runtime_error("failed"); }), std::runtime_error);
}

}  // namespace
}  // namespace duplex
