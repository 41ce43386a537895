// Tests duplex report with run directories that are complete, interrupted or damaged, and its
// verdicts on the thesis's statements.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/temporary_folder.h"
#include "tests/tools/program.h"
#include "tools/report/chart.h"
#include "tools/report/page.h"
#include "tools/report/run_data.h"
#include "tools/report/sequence.h"
#include "tools/report/thesis/statements.h"
#include "tools/report/thesis/thesis_data.h"

namespace duplex::tools::reports {
namespace {

using testing::read_text;
using testing::Result;
using testing::run;
using testing::write_text;

/// Simulates a run of three workers.
void simulate(const std::string& directory) {
  const Result result =
      run({"simulate", "--net", "lenet", "--t-grad", "0.02", "--rate", "100Mbit/s", "--workers",
           "3", "--batches", "30", "--overlap", "off", "--logdir", directory});
  ASSERT_EQ(result.exit, 0) << result.err;
}

TEST(ReportCommand, MakesOnePageOfRunsAndALink) {
  const TemporaryFolder folder;
  simulate(folder / "run");
  std::filesystem::create_directories(folder / "link");
  write_text(folder / "link/transport-ps.json",
             R"({"version": 1, "command": "transport", "title": "LeNet", "t_comm": 0.1379})");
  const Result result = run({"report", folder / "run", folder / "link"});
  ASSERT_EQ(result.exit, 0) << result.err;
  EXPECT_EQ(result.out, folder / "run/report.html" + "\n");
  const std::string page = read_text(folder / "run/report.html");
  EXPECT_NE(page.find("137.9 ms"), std::string::npos);  // It is the link's t_comm.
  EXPECT_NE(page.find("simulated"), std::string::npos);
  EXPECT_EQ(page.find("<link"), std::string::npos);
  EXPECT_EQ(page.find("src="), std::string::npos);
}

/// Each asynchronous worker has its own pace.
TEST(ReportCommand, CountsWhatAllAsynchronousWorkersDo) {
  const TemporaryFolder folder;
  ASSERT_EQ(
      run({"simulate", "--net", "lenet", "--t-grad", "0.1", "--rate", "1Gbit/s", "--workers", "2",
           "--batches", "20", "--sync", "none", "--slow", "1:3", "--logdir", folder / "run"})
          .exit,
      0);
  const RunData data = read_run_data(folder / "run");
  const double first = data.rank_summaries.at(0).pace, second = data.rank_summaries.at(1).pace;
  EXPECT_GT(first, 2.5 * second);
  EXPECT_DOUBLE_EQ(*data.throughput(), first + second);
  ASSERT_EQ(run({"report", folder / "run"}).exit, 0);
  EXPECT_NE(read_text(folder / "run/report.html").find("by what the simulation was given"),
            std::string::npos);
  std::filesystem::remove(folder / "run/rank-1.json");
  EXPECT_EQ(read_run_data(folder / "run").throughput(), std::nullopt);
}

/// The time of a worker's layers, by the trace, is its t_grad.
TEST(TraceData, KnowsWhatLayersTake) {
  const TemporaryFolder folder;
  for (const char* server : {"distributed", "central"}) {
    ASSERT_EQ(run({"simulate", "--net", "lenet", "--t-grad", "0.1", "--rate", "1Gbit/s",
                   "--workers", "2", "--batches", "12", "--server", server, "--trace",
                   "--trace-steps", "4", "--logdir", folder / server})
                  .exit,
              0);
    const RunData data = read_run_data(folder / server);
    const TraceData trace = data.trace();
    const std::vector<LayerSeconds> layers = trace.layers(data.first_worker());
    ASSERT_FALSE(layers.empty());
    EXPECT_EQ(layers.front().name, "conv1");
    double sum = 0.0;
    for (const LayerSeconds& layer : layers) sum += layer.forward + layer.backward;
    EXPECT_NEAR(sum, 0.1, 1e-5);
    const std::size_t four = trace.spans.size(), two = trace.last(2).spans.size();
    EXPECT_GT(two, 0U);
    EXPECT_LT(two, four);
  }
  EXPECT_TRUE(read_run_data(folder / "central").trace().layers(0).empty());
  write_text(folder / "central/trace.json", R"({"traceEvents": [], "otherData": {"version": 2}})");
  EXPECT_EQ(run({"report", folder / "central"}).exit, 1);
}

TEST(ReportCommand, SaysWhichFileIsDamaged) {
  const TemporaryFolder folder;
  simulate(folder / "good");
  const auto refuses = [&](const std::string& file, const std::string& text,
                           const std::string& because) {
    std::filesystem::remove_all(folder / "bad");
    std::filesystem::copy(folder / "good", folder / "bad");
    write_text(folder / "bad/" + file, text);
    const Result result = run({"report", folder / "bad"});
    EXPECT_EQ(result.exit, 1) << file << ": " << text;
    EXPECT_NE(result.err.find(file), std::string::npos) << result.err;
    EXPECT_NE(result.err.find(because), std::string::npos) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_FALSE(std::filesystem::exists(folder / "bad/report.html"));
  };
  refuses("config.json", R"({"version": 2})", "another version");
  refuses("config.json", R"({"version": 1})", "damaged");
  refuses("config.json", R"({"vers)", "damaged");
  refuses("summary.json", R"({"version": 1, "t_grad_s": 3})", "damaged");
  refuses("summary.json", R"({"version": 1, "t_grad_s": {"median": -1}})", "damaged");
  refuses("rank-1.json", R"({"version": 1})", "damaged");
  refuses("metrics.csv", "step,loss\n", "no metrics.csv of this version");
  refuses("metrics.csv",
          "step,epoch,loss,rate,total_s,data_s,gradient_s,await_s,push_s\n0,0,,0,x,0,0,0,0\n"
          "1,0,,0,1,0,1,0,0\n",
          "damaged");
  refuses("metrics.csv",
          "step,epoch,loss,rate,total_s,data_s,gradient_s,await_s,push_s\n0,0,,0,1,0,1,0,0\n1,0,,0",
          "damaged");
  refuses("metrics.csv",
          "step,epoch,loss,rate,total_s,data_s,gradient_s,await_s,push_s\n0,0,,0,nan,0,1,0,0\n"
          "1,0,nan,0,1,0,1,0,0\n",
          "damaged");
  refuses("accuracy.csv", "step,top1\n", "no accuracy.csv of this version");
  refuses("ledger-0.csv", "rank\n", "no ledger-0.csv of this version");
  refuses("ledger-1.csv",
          "rank,direction,peer,kind,step,parameter,chunk,bytes,queued_ns,first_ns,last_ns\n"
          "1,sent,0,weights,0,0,0,x,0,0,0\n1,sent,0,weights,0,0,0,1,0,0,0\n",
          "damaged");
  refuses("ledger-1.csv",
          "rank,direction,peer,kind,step,parameter,chunk,bytes,queued_ns,first_ns,last_ns\n"
          "1,sent,0,weights,0,0,0,1,0,0,0\n1,sent,0,wei",
          "damaged");
  EXPECT_EQ(run({"report", folder / "nowhere"}).exit, 1);
  EXPECT_EQ(run({"report"}).exit, 2);
}

TEST(ReportCommand, ReportsAnInterruptedRunAsFarAsItCame) {
  const TemporaryFolder folder;
  simulate(folder / "run");
  std::filesystem::remove(folder / "run/summary.json");
  const std::string metrics = read_text(folder / "run/metrics.csv");
  write_text(folder / "run/metrics.csv", metrics.substr(0, metrics.size() - 12));
  const Result result = run({"report", folder / "run"});
  EXPECT_EQ(result.exit, 0) << result.err;
  EXPECT_NE(result.err.find("was interrupted; reported as far as it came"), std::string::npos);
  EXPECT_NE(read_text(folder / "run/report.html").find("9, interrupted"), std::string::npos);
}

TEST(Page, EscapesWhatItIsGiven) {
  Page page("<t>");
  page.heading(2, "a & b", "\"id\"");
  page.table({"<c>"}, {{"!<bad>"}, {"=good"}});
  const std::string html = page.str();
  EXPECT_NE(html.find("<title>&lt;t&gt;</title>"), std::string::npos);
  EXPECT_NE(html.find("<h2 id=\"&quot;id&quot;\">a &amp; b</h2>"), std::string::npos);
  EXPECT_NE(html.find("<td class=\"t bad\">&lt;bad&gt;</td>"), std::string::npos);
  EXPECT_NE(html.find("<td class=\"t good\">good</td>"), std::string::npos);
}

TEST(Chart, HasRoundTicksAroundItsValues) {
  EXPECT_EQ(ticks(0.0, 7.3, 8), (std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7, 8}));
  const std::vector<double> small = ticks(0.1, 0.14, 4);
  EXPECT_NEAR(small.front(), 0.1, 1e-12);
  EXPECT_NEAR(small[1] - small[0], 0.01, 1e-12);
  EXPECT_GE(small.back(), 0.14 - 1e-12);
  EXPECT_NE(svg(LineChart{}).find("no data"), std::string::npos);
}

/// A band reaches from one edge to the other and back, and the axis holds both; its legend is an
/// area, too.
TEST(Chart, FillsABandBetweenItsEdges) {
  LineChart chart;
  chart.x_from_zero = false;
  chart.series = {
      {"worst to best", {{1, 2.0}, {2, 4.0}}, Series::Style::band, 5, {{1, 2.0}, {2, 0.0}}}};
  const std::string drawn = svg(chart);
  // The plot is 404 wide from 54 on, and 210 high from 32 on, for 0 to 4.
  EXPECT_NE(drawn.find("<path d=\"M54.00 137.00L458.00 32.00L458.00 242.00L54.00 137.00z\" "
                       "fill=\"var(--c5)\" fill-opacity=\"0.2\"/>"),
            std::string::npos)
      << drawn;
  EXPECT_NE(drawn.find("height=\"11\" fill=\"var(--c5)\" fill-opacity=\"0.2\"/><text"),
            std::string::npos)
      << drawn;
  EXPECT_NE(drawn.find("data-drawn=\"4\""), std::string::npos) << drawn;
}

/// A ledger of a central server and a worker has weights from 1 to 3 s, gradients from 5 to 6 s.
TEST(SequenceDiagram, TakesAnIterationFromWeightsToGradients) {
  const auto frame = [](int peer, bool sent, bool weights, double first, double last) {
    LedgerFrame frame;
    frame.peer = peer;
    frame.sent = sent;
    frame.weights = weights;
    frame.step = 2;
    frame.first = first;
    frame.last = last;
    return frame;
  };
  const std::vector<std::vector<LedgerFrame>> ledgers{
      {frame(1, true, true, 1.0, 2.9), frame(1, false, false, 5.0, 6.0)},
      {frame(0, false, true, 1.1, 3.0), frame(0, true, false, 4.9, 5.5)}};
  const Iteration iteration = sequence_diagram(ledgers, 0, 2, "title");
  EXPECT_NEAR(iteration.seconds, 5.0, 1e-9);
  EXPECT_NE(iteration.svg.find("worker 1 computes, 2000 ms"), std::string::npos) << iteration.svg;
  EXPECT_NE(iteration.svg.find("worker 1 sends gradients, 1000 ms"), std::string::npos);
  EXPECT_NE(iteration.svg.find("weights to worker 1, 1900 ms"), std::string::npos);
}

/// A thesis with one point for each statement.
class Statements : public ::testing::Test {
 protected:
  void point(const std::string& figure, net::ServerMode server, int workers, double lab,
             double simulated) {
    ThesisPoint& point = thesis_.points[{figure, net::name_of(server), workers}];
    point.lab = LabResult{lab, 0.1};
    point.simulated = simulated;
  }
  Verdict of(const std::string& figures) const {
    for (const Verdict& verdict : verdicts(thesis_))
      if (verdict.figures == figures) return verdict;
    throw std::runtime_error("no statement on " + figures);
  }
  Thesis thesis_;
};

TEST_F(Statements, AreConfirmedOrNotByTheLab) {
  EXPECT_EQ(of("6.3").outcome, Verdict::open);
  point("6.3", net::ServerMode::distributed, 8, 6.4, 9.9);
  EXPECT_EQ(of("6.3").outcome, Verdict::confirmed);  // The thesis has 6.5.
  point("6.4", net::ServerMode::distributed, 8, 2.6, 2.1);
  EXPECT_EQ(of("6.4").outcome, Verdict::refuted);  // The thesis has 2.1.
  EXPECT_EQ(of("6.4").found.rfind("more: 2.60 on the lab, ", 0), 0U) << of("6.4").found;
  point("6.1", net::ServerMode::central, 3, 0.9, 0.9);
  EXPECT_EQ(of("6.1, 6.8").outcome, Verdict::confirmed);
  point("6.8", net::ServerMode::distributed, 2, 1.1, 0.9);
  EXPECT_EQ(of("6.1, 6.8").outcome, Verdict::refuted);
  for (int n = 1; n <= 8; ++n) point("6.6", net::ServerMode::central, n, n == 4 ? 2.0 : 1.0, 1.0);
  EXPECT_EQ(of("6.6").outcome, Verdict::confirmed);
  point("6.6", net::ServerMode::central, 5, 2.01, 1.0);  // It counts as equally good.
  EXPECT_EQ(of("6.6").outcome, Verdict::confirmed);
  point("6.6", net::ServerMode::central, 5, 2.1, 1.0);
  EXPECT_EQ(of("6.6").outcome, Verdict::refuted);

  EXPECT_TRUE(of("6.1, 6.8").is_of("6.8"));
  EXPECT_FALSE(of("6.1, 6.8").is_of("6.4"));
  EXPECT_TRUE(of("6.1-6.4").is_of("6.2"));
  EXPECT_FALSE(of("6.1-6.4").is_of("6.11"));
}

TEST_F(Statements, AccuracyIsOfTheSimulationAgainstTheLab) {
  point("6.3", net::ServerMode::distributed, 2, 2.0, 2.02);
  point("6.3", net::ServerMode::distributed, 4, 4.0, 3.8);
  point("6.3", net::ServerMode::distributed, 8, 8.0, 8.0);
  const PredictionError error = prediction_error(thesis_, Order::both);
  EXPECT_EQ(error.points, 3U);
  EXPECT_NEAR(error.median, 0.01, 1e-12);
  EXPECT_NEAR(error.worst, 0.05, 1e-12);
  EXPECT_EQ(error.worst_at, "6.3, distributed, N = 4");
}

TEST(ThesisData, SaysWhichFileIsDamaged) {
  const TemporaryFolder folder;
  const std::string head =
      R"({"version": 1, "processor": "p", "kernel": "k", "congestion": "cubic",)"
      R"( "cores": 2, "mbit": 1000, "lab": true})";
  write_text(folder / "thesis.json", head);
  EXPECT_TRUE(is_thesis(folder.path()));
  EXPECT_EQ(read_thesis(folder.path()).cores, 2);
  write_text(folder / "costs.json",
             R"({"version": 1, "networks": {"resnet34": {"bytes": 8, "t_comm": 0.7}}})");
  EXPECT_EQ(read_thesis(folder.path()).costs.at("resnet34").comm, 0.7);
  const std::string good =
      R"({"kind": "lab", "figure": "6.1", "server": "central", "workers": 2, "order": "strict",)"
      R"( "commit": "c", "speedup": 0.5})"
      "\n";
  const auto refused = [&](const std::string& text) {
    write_text(folder / "points.jsonl", good + text + "\n");
    const Result result = run({"report", folder.path()});
    EXPECT_EQ(result.exit, 1);
    EXPECT_NE(result.err.find("points.jsonl is damaged: line 2"), std::string::npos) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  };
  refused("{");
  refused(R"({"kind": "lab"})");
  refused(R"({"kind": "lab", "figure": "6.1", "server": "central", "workers": 2,)"
          R"( "order": "strict", "commit": "c", "speedup": -1})");
  // The last line was interrupted.
  write_text(folder / "points.jsonl", good + R"({"kind": "lab", "fig)");
  const Thesis thesis = read_thesis(folder.path());
  EXPECT_EQ(thesis.point("6.1", net::ServerMode::central, 2)->lab->speedup, 0.5);
  EXPECT_EQ(thesis.commits, std::set<std::string>{"c"});
}

}  // namespace
}  // namespace duplex::tools::reports
