// Tests duplex report with run directories that are complete, interrupted or damaged, and its
// charts.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/temporary_folder.h"
#include "tests/tools/program.h"
#include "tools/report/chart.h"
#include "tools/report/page.h"
#include "tools/report/run_data.h"

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

/// Each layer has the colour of the rank that computes it; one output crosses, and its gradient.
TEST(ReportCommand, DrawsHowTheNetworkIsCut) {
  const TemporaryFolder folder;
  ASSERT_EQ(run({"simulate", "--net",      "lenet",       "--t-grad", "0.1",     "--rate",
                 "1Gbit/s",  "--workers",  "2",           "--batch",  "500",     "--batches",
                 "8",        "--strategy", "pipeline",    "--stages", "1:1@fc1", "--micro-batches",
                 "2",        "--logdir",   folder / "run"})
                .exit,
            0);
  ASSERT_EQ(run({"report", folder / "run"}).exit, 0);
  const std::string page = read_text(folder / "run/report.html");
  const auto count = [&](const std::string& text) {
    int found = 0;
    for (std::size_t at = page.find(text); at != std::string::npos; at = page.find(text, at + 1))
      ++found;
    return found;
  };
  EXPECT_EQ(count("The layers of LeNet, cut by pipeline 1:1@fc1, 2 micro-batches"), 1);
  EXPECT_EQ(count("fill-opacity:0.35"), 7);
  EXPECT_EQ(count("stroke-width:11.2"), 1);
  // 1,000 images of 4x4x50 float32s, there and back.
  EXPECT_EQ(count("pool2: max pool 2x2/2, 4x4x50; maps 6.4 MB, weights 0.0 MB"), 1);
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
    const std::vector<LayerSeconds> layers = trace.layers(data.first_worker(), data.micro_batches);
    ASSERT_FALSE(layers.empty());
    EXPECT_EQ(layers.front().name, "conv1");
    double sum = 0.0;
    for (const LayerSeconds& layer : layers) sum += layer.forward + layer.backward;
    EXPECT_NEAR(sum, 0.1, 1e-5);
    const std::size_t four = trace.spans.size(), two = trace.last(2).spans.size();
    EXPECT_GT(two, 0U);
    EXPECT_LT(two, four);
  }
  EXPECT_TRUE(read_run_data(folder / "central").trace().layers(0, 1).empty());
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
  const std::vector<Page::Row> rows{{Cell("<bad>", Cell::Mark::bad)},
                                    {Cell("good", Cell::Mark::good)},
                                    {"=text"},
                                    {std::string("!text")}};
  page.table({"<c>"}, rows);
  const std::string html = page.str();
  EXPECT_NE(html.find("<title>&lt;t&gt;</title>"), std::string::npos);
  EXPECT_NE(html.find("<h2 id=\"&quot;id&quot;\">a &amp; b</h2>"), std::string::npos);
  EXPECT_NE(html.find("<td class=\"t bad\">&lt;bad&gt;</td>"), std::string::npos);
  EXPECT_NE(html.find("<td class=\"t good\">good</td>"), std::string::npos);
  EXPECT_NE(html.find("<td class=\"t\">=text</td>"), std::string::npos) << html;
  EXPECT_NE(html.find("<td class=\"t\">!text</td>"), std::string::npos) << html;
}

TEST(Chart, HasRoundTicksAroundItsValues) {
  EXPECT_EQ(ticks(0.0, 7.3, 8), (std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7, 8}));
  const std::vector<double> small = ticks(0.1, 0.14, 4);
  EXPECT_NEAR(small.front(), 0.1, 1e-12);
  EXPECT_NEAR(small[1] - small[0], 0.01, 1e-12);
  EXPECT_GE(small.back(), 0.14 - 1e-12);
  EXPECT_NE(svg(LineChart{}).find("no data"), std::string::npos);

  // These are too large for what is beside them to be told apart.
  const double next = std::nextafter(1e17, 2e17);
  EXPECT_GE(ticks(1e17, 1e17, 6).size(), 2U);
  EXPECT_LT(ticks(1e17, next, 6).size(), 20U);
  LineChart large;
  large.series = {{"loss", {{0, 1e17}, {1, next}}}};
  large.from_zero = false;
  EXPECT_EQ(svg(large).find("nan"), std::string::npos);
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

  chart.series[0].name.clear();
  EXPECT_EQ(svg(chart).find("<rect"), std::string::npos) << "no name, nothing in the legend";
}

TEST(Chart, WritesNumbersAsPeopleDo) {
  const std::vector<std::pair<double, const char*>> numbers{
      {0.0, "0"},         {1e-13, "0"},       {0.123456, "0.1235"},
      {9999.4, "9999"},   {10000.0, "10000"}, {-12345.6, "-12346"},
      {99999.4, "99999"}, {99999.6, "1e+05"}, {120000.0, "1.2e+05"}};
  for (const auto& [value, text] : numbers) EXPECT_EQ(number_text(value), text);
}

}  // namespace
}  // namespace duplex::tools::reports
