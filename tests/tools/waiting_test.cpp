// Tests that owners count for whom everybody waited, and that report shows it.
#include "tests/tools/training_runs.h"
#include "tools/run_directory/run_files.h"

namespace duplex::tools::testing {
namespace {

using Waiting = TrainingRuns;

constexpr int batches = 8;

/// Rank `slow` is the last in all steps but perhaps the first, after which all begin together.
void expect_straggler(const std::string& file, int slow, double seconds_a_step) {
  const RunSummary summary = read_summary(file);
  ASSERT_TRUE(summary.stragglers) << file;
  ASSERT_FALSE(summary.stragglers->empty()) << file;
  const StragglerSummary& worst = summary.stragglers->front();
  EXPECT_EQ(worst.rank, slow) << file;
  EXPECT_GE(worst.steps, batches - 1U) << file;
  EXPECT_GE(worst.late, seconds_a_step * (batches - 1)) << file;
  EXPECT_LE(worst.receiving, worst.late) << file;
  std::uint64_t steps = 0;
  for (const StragglerSummary& each : *summary.stragglers) steps += each.steps;
  EXPECT_EQ(steps, std::uint64_t{batches}) << file;  // One rank is the last in each step.
}

/// The replays take as long as they are told at least, so the others have always been waiting.
TEST_F(Waiting, IsForTheRankThatTakesLongest) {
  std::string nodes;
  for (int port : free_ports(3)) nodes += "127.0.0.1:" + std::to_string(port) + "\n";
  write_text(folder_ / "nodes", nodes);
  for (const char* server : {"distributed", "central"}) {
    const std::string name = server;
    std::vector<Process> ranks;
    for (int rank = 0; rank < 3; ++rank)
      ranks.emplace_back(std::vector<std::string>{
          "dist", "--net", "lenet", "--device", rank == 2 ? "replay:0.3" : "replay:0.02",
          "--batches", std::to_string(batches), "--server", server, "--nodefile", folder_ / "nodes",
          "--index", std::to_string(rank), "--logdir", folder_ / name, "--job", name, "--timeout",
          "20"});
    for (Process& rank : ranks) {
      const Result result = rank.wait();
      ASSERT_EQ(result.exit, 0) << result.err;
    }
    const bool central = name == "central";
    for (int rank = 0; rank < (central ? 1 : 3); ++rank)
      expect_straggler(folder_ / (name + "/" + rank_file(rank)), 2, 0.15);
    if (central) {
      EXPECT_FALSE(read_summary(folder_ / (name + "/" + rank_file(1))).stragglers);
    }
    const Result report = run({"report", folder_ / name, "--output", folder_ / "page.html"});
    ASSERT_EQ(report.exit, 0) << report.err;
    const std::string page = read_text(folder_ / "page.html");
    EXPECT_NE(page.find("Waiting, by cause"), std::string::npos);
    const std::size_t table = page.find("waited for");
    EXPECT_NE(table, std::string::npos);
    EXPECT_LT(page.find(">rank 2<", table), page.find("</table>", table));
  }
}

TEST_F(Waiting, IsSimulated) {
  for (const char* server : {"distributed", "central"}) {
    const Result result =
        run({"simulate", "--net", "lenet", "--t-grad", "0.02", "--rate", "1Gbit/s", "--workers",
             "3", "--batches", std::to_string(3 * batches), "--slow", "2:15", "--server", server,
             "--logdir", folder_ / server});
    ASSERT_EQ(result.exit, 0) << result.err;
    expect_straggler(folder_ / (std::string(server) + "/" + rank_file(0)), 2, 0.25);
  }
}

TEST_F(Waiting, NobodyWaitsInAnAsynchronousRun) {
  const Result result =
      run({"simulate", "--net", "lenet", "--t-grad", "0.02", "--rate", "1Gbit/s", "--workers", "2",
           "--batches", "8", "--sync", "none", "--logdir", folder_ / "async"});
  ASSERT_EQ(result.exit, 0) << result.err;
  EXPECT_FALSE(read_summary(folder_ / ("async/" + rank_file(0))).stragglers);
}

}  // namespace
}  // namespace duplex::tools::testing
