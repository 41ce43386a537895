// Tests the files of make thesis as report reads them, and the sequence diagrams that it draws.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/temporary_folder.h"
#include "tests/tools/program.h"
#include "tools/report/thesis/sequence.h"
#include "tools/report/thesis/thesis_data.h"

namespace duplex::tools::reports {
namespace {

using testing::Result;
using testing::run;
using testing::write_text;

/// A central server and a worker that receives weights in 1 to 3 s and sends gradients in 5 to 6 s.
TEST(SequenceDiagram, DrawsTransfersAndWhatIsBetweenThem) {
  Iteration iteration;
  iteration.step = 2;
  iteration.seconds = 6.0;
  iteration.ranks = {{}, {TransferTime{1.0, 3.0}, TransferTime{5.0, 6.0}}};
  const std::string svg = sequence_diagram(iteration, 0, "title");
  for (const char* drawn :
       {"worker 1 receives weights, 2000 ms", "worker 1 computes, 2000 ms",
        "worker 1 sends gradients, 1000 ms", "weights to worker 1, 2000 ms",
        "gradients of worker 1, 1000 ms", "data-drawn=\"5\"",
        // 398 of 480 units are 6 s: the weights begin after one of them and take two.
        "<rect x=\"140.33\" y=\"62.00\" width=\"132.67\""})
    EXPECT_NE(svg.find(drawn), std::string::npos) << drawn << "\n" << svg;
  EXPECT_EQ(svg.find("worker 0"), std::string::npos) << svg;
}

class ThesisData : public ::testing::Test {
 protected:
  ThesisData() {
    write_text(folder_ / "thesis.json",
               R"({"version": 1, "processor": "p", "kernel": "k", "congestion": "cubic",)"
               R"( "cores": 2, "mbit": 1000, "lab": true})");
  }
  /// Returns the one line that report prints about a damaged file.
  std::string refused() const {
    const Result result = run({"report", folder_.path()});
    EXPECT_EQ(result.exit, 1);
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    return result.err;
  }
  const TemporaryFolder folder_;
};

TEST_F(ThesisData, SaysWhichFileIsDamaged) {
  EXPECT_TRUE(is_thesis(folder_.path()));
  EXPECT_EQ(read_thesis(folder_.path()).cores, 2);
  write_text(folder_ / "costs.json",
             R"({"version": 1, "networks": {"resnet34": {"bytes": 8, "t_comm": 0.7}}})");
  EXPECT_EQ(read_thesis(folder_.path()).costs.at("resnet34").comm, 0.7);
  const std::string good =
      R"({"kind": "lab", "figure": "6.1", "server": "central", "workers": 2, "order": "strict",)"
      R"( "commit": "c", "speedup": 0.5})"
      "\n";
  for (const char* bad : {"{", R"({"kind": "lab"})",
                          R"({"kind": "lab", "figure": "6.1", "server": "central", "workers": 2,)"
                          R"( "order": "strict", "commit": "c", "speedup": -1})"}) {
    write_text(folder_ / "points.jsonl", good + bad + "\n");
    const std::string said = refused();
    EXPECT_NE(said.find("points.jsonl is damaged: line 2"), std::string::npos) << said;
  }
  // The last line was interrupted.
  write_text(folder_ / "points.jsonl", good + R"({"kind": "lab", "fig)");
  const Thesis thesis = read_thesis(folder_.path());
  EXPECT_EQ(thesis.point("6.1", net::ServerMode::central, 2)->lab->speedup, 0.5);
  EXPECT_EQ(thesis.commits, std::set<std::string>{"c"});
}

TEST_F(ThesisData, HasTheIterationsOfChapter4) {
  const auto write = [&](const std::string& ranks) {
    write_text(folder_ / "diagrams.json",
               R"({"version": 1, "figures": {"4.2": {"step": 3, "seconds": 1.5, "ranks": )" +
                   ranks + "}}}");
  };
  write(
      R"([{"weights": null, "gradients": null}, {"weights": [0.1, 0.5], "gradients": [1, 1.5]}])");
  const Iteration iteration = read_thesis(folder_.path()).diagrams.at("4.2");
  EXPECT_EQ(iteration.step, 3);
  EXPECT_EQ(iteration.seconds, 1.5);
  ASSERT_EQ(iteration.ranks.size(), 2U);
  EXPECT_FALSE(iteration.ranks[0].weights || iteration.ranks[0].gradients);
  EXPECT_EQ(iteration.ranks[1].weights->to, 0.5);
  EXPECT_EQ(iteration.ranks[1].gradients->from, 1.0);
  for (const char* bad :
       {R"([{"weights": [0.5, 0.1], "gradients": null}])",
        R"([{"weights": [1e999, 1e999], "gradients": null}])",
        R"([{"weights": null, "gradients": [1]}])", R"([{"weights": null, "gradients": "soon"}])",
        R"([{"weights": null}])", "[3]", "3"}) {
    write(bad);
    const std::string said = refused();
    EXPECT_NE(said.find("diagrams.json"), std::string::npos) << bad << "\n" << said;
  }
}

}  // namespace
}  // namespace duplex::tools::reports
