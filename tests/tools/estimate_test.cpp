// Tests duplex estimate against an evaluation of the equations in fractions
// (tests/oracle/estimates.py), and tests its output.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/error.h"
#include "tests/temporary_folder.h"
#include "tests/tools/program.h"
#include "tools/prediction/equations.h"
#include "tools/text/rate.h"

namespace duplex::tools::testing {
namespace {

using nlohmann::json;

std::vector<double> numbers_in(const std::string& line) {
  std::vector<double> numbers;
  std::istringstream text(line);
  for (std::string cell; std::getline(text, cell, ';');) numbers.push_back(std::stod(cell));
  return numbers;
}

std::string text_of(double value) {
  std::ostringstream text;
  text.precision(17);
  text << value;
  return text.str();
}

TEST(EstimateCommand, CsvIsTheEquations) {
  const auto path = std::filesystem::path(__FILE__).parent_path().parent_path() / "oracle";
  std::ifstream file(path / "estimates.json");
  const json records = json::parse(file);
  ASSERT_EQ(records.size(), 24U);
  for (const json& record : records) {
    const struct {
      net::Sync sync;
      net::ServerMode server;
    } way{record.at("type") == "async"        ? net::Sync::none
          : record.at("type") == "sync-split" ? net::Sync::split
                                              : net::Sync::join,
          net::parse_server_mode(record.at("server"))};
    const Costs costs{record.at("t_comm"), record.at("t_grad")};
    const Result result =
        run({"estimate", "--t-grad", text_of(costs.grad), "--t-comm", text_of(costs.comm), "--type",
             record.at("type"), "--server", record.at("server"), "--workers", "8", "--batches",
             std::to_string(record.at("batches").get<int>()), "--output", "csv"});
    ASSERT_EQ(result.exit, 0) << result.err;
    const std::vector<double> printed = numbers_in(result.out);
    ASSERT_EQ(printed.size(), 8U) << result.out;
    const bool central = way.server == net::ServerMode::central;
    std::vector<double> worst, best;  // On standard error: (4.10), (4.19).
    if (central) {
      std::istringstream lines(result.err);
      std::string head, low, high;
      ASSERT_TRUE(std::getline(lines, head) && std::getline(lines, low) &&
                  std::getline(lines, high))
          << result.err;
      EXPECT_EQ(head, std::string(way.sync == net::Sync::none ? "(4.19)" : "(4.10)") +
                          ": the true value lies between");
      worst = numbers_in(low.substr(0, low.find(' ')));
      best = numbers_in(high.substr(0, high.find(' ')));
      ASSERT_EQ(worst.size(), 8U) << low;
      ASSERT_EQ(best.size(), 8U) << high;
    } else {
      EXPECT_EQ(result.err, "");
    }
    for (int n = 1; n <= 8; ++n) {
      const auto i = static_cast<std::size_t>(n - 1);
      const double expected = record.at("speedups").at(i);
      const double found = speedup(costs, way.sync, way.server, n, record.at("batches"));
      EXPECT_NEAR(found, expected, 1e-9 * expected) << record.at("network") << ", N = " << n;
      EXPECT_NEAR(printed[i], expected, 1e-8 * expected);
      const auto between = speedup_between(costs, way.sync, way.server, n, record.at("batches"));
      ASSERT_EQ(between.has_value(), central);
      if (!central) continue;
      const double low = record.at("worst").at(i), high = record.at("best").at(i);
      EXPECT_NEAR(between->low, low, 1e-9 * low) << record.at("network") << ", N = " << n;
      EXPECT_NEAR(between->high, high, 1e-9 * high) << record.at("network") << ", N = " << n;
      EXPECT_NEAR(worst[i], low, 1e-8 * low);
      EXPECT_NEAR(best[i], high, 1e-8 * high);
    }
  }
}

TEST(EstimateCommand, PrintsOneNumberAndSaysWhatIsLeftOver) {
  const Result even = run({"estimate", "--t-grad", "0.821", "--t-comm", "0.811", "--workers", "8"});
  EXPECT_NEAR(std::stod(even.out), 8 * 0.821 / 2.24025, 1e-7);
  EXPECT_EQ(even.err,
            "the speedup of 8 workers over one machine (sync join, server distributed), over 128 "
            "batches, each as large as the one that t_grad is of:\n"
            "duplex plan simulates the order that dist has, and every way beside it\n");
  const Result odd = run({"estimate", "--t-grad", "1", "--t-comm", "1", "--workers", "3"});
  EXPECT_EQ(odd.exit, 0);
  EXPECT_NE(odd.err.find("128 batches are no multiple of 3 workers"), std::string::npos) << odd.err;
  EXPECT_NE(odd.err.find("42.67 of each, a run 43"), std::string::npos) << odd.err;
}

/// Standard output is the bare number; where the thesis has an interval, standard error tells it.
TEST(EstimateCommand, SaysBesideTheNumberWhereTheTruthLies) {
  const auto estimated = [](const char* type, const char* server) {
    return run({"estimate", "--t-grad", "1", "--t-comm", "0.25", "--workers", "4", "--batches", "8",
                "--type", type, "--server", server});
  };
  // (4.4): 5 * 0.25 + 1 = 2.25 s, (4.7): 8 * 0.25 + 1 = 3 s an iteration of four batches.
  const Result join = estimated("sync-join", "central");
  EXPECT_EQ(join.out, "1.52380952\n");
  EXPECT_NE(
      join.err.find("\n(4.10): the true value lies between 1.33333333 in the worst case (4.7) "
                    "and 1.77777778 in the best (4.4)\n"),
      std::string::npos)
      << join.err;
  // (4.13)-(4.15): 9 * 0.25 + 1 = 3.25 s, or 3 * 0.25 + 2 * 1.5 = 3.75 s; (4.16): 2 * 3 s.
  const Result async = estimated("async", "central");
  EXPECT_EQ(async.out, "1.64102564\n");
  EXPECT_NE(async.err.find("\n(4.19): the true value lies between 1.33333333 in the worst case "
                           "(4.16) and 2.13333333 in the best (4.13) to (4.15)\n"),
            std::string::npos)
      << async.err;
  const Result distributed = estimated("sync-join", "distributed");
  EXPECT_EQ(distributed.err.find("lies between"), std::string::npos) << distributed.err;
}

TEST(EstimateCommand, TakesBytesOverARate) {
  // GoogLeNet has 6,998,552 parameters with 1000 classes.
  const Result result = run({"estimate", "--t-grad", "0.763", "--net", "googlenet", "--rate",
                             "1Gbit/s", "--workers", "1", "--server", "central"});
  ASSERT_EQ(result.exit, 0) << result.err;
  const double comm = 4.0 * 6998552.0 / 125e6;
  EXPECT_NEAR(std::stod(result.out), 0.763 / (2 * comm + 0.763), 1e-8);
}

TEST(EstimateCommand, TakesWhatRunsHaveMeasured) {
  const TemporaryFolder folder;
  const auto write = [&](const std::string& name, const json& content) {
    std::ofstream(folder / name) << content.dump();
  };
  std::filesystem::create_directories(folder / "alone");
  const json config{{"version", 1},     {"command", "local"}, {"network", "lenet"},
                    {"title", "LeNet"}, {"batch", 4},         {"input", "1x1x28x28"},
                    {"classes", 10},    {"device", "d"}};
  write("alone/config.json", config);
  write("alone/summary.json",
        {{"version", 1}, {"command", "local"}, {"t_grad_s", {{"median", 0.5}}}});
  std::filesystem::create_directories(folder / "link");
  write("link/transport-ps.json",
        {{"version", 1}, {"command", "transport"}, {"title", "LeNet"}, {"t_comm", 0.25}});
  const Result result =
      run({"estimate", "--from", folder / "alone", "--from", folder / "link", "--workers", "2"});
  ASSERT_EQ(result.exit, 0) << result.err;
  EXPECT_NEAR(std::stod(result.out), 2 * 0.5 / 0.75, 1e-8);
  EXPECT_NE(result.err.find("t_grad 500.0 ms from"), std::string::npos) << result.err;
  // A flag's figure counts before those of runs, and then that of the first run that has one.
  std::filesystem::create_directories(folder / "other");
  write("other/config.json", config);
  write("other/summary.json",
        {{"version", 1}, {"command", "local"}, {"t_grad_s", {{"median", 4.0}}}});
  const Result two = run({"estimate", "--from", folder / "alone", "--from", folder / "other",
                          "--t-comm", "0.5", "--from", folder / "link", "--workers", "2"});
  EXPECT_NEAR(std::stod(two.out), 1.0, 1e-8);

  // A run of one machine has measured no t_comm.
  const Result half = run({"estimate", "--from", folder / "alone", "--workers", "2"});
  EXPECT_EQ(half.exit, 2);
  EXPECT_NE(half.err.find("no t_comm"), std::string::npos) << half.err;
  // A replayed run has measured no t_grad, since waiting is not computing.
  json replay = config;
  replay["replayed"] = true;
  write("alone/config.json", replay);
  EXPECT_EQ(run({"estimate", "--from", folder / "alone", "--workers", "2"}).exit, 1);
  for (const char* broken : {"{\"version\": 2}", "{\"version\": 1}", "{\"ver", ""}) {
    std::ofstream(folder / "alone/config.json") << broken;
    const Result damaged = run({"estimate", "--from", folder / "alone", "--workers", "2"});
    EXPECT_EQ(damaged.exit, 1) << broken;
    EXPECT_NE(damaged.err.find("alone"), std::string::npos) << damaged.err;
  }
  EXPECT_EQ(run({"estimate", "--from", folder / "nowhere", "--workers", "2"}).exit, 1);
}

TEST(EstimateCommand, RefusesWhatMakesNoSense) {
  const auto refuses = [](std::vector<std::string> arguments, const std::string& because) {
    arguments.insert(arguments.begin(), "estimate");
    const Result result = run(arguments);
    EXPECT_EQ(result.exit, 2) << result.err;
    EXPECT_NE(result.err.find(because), std::string::npos) << result.err;
    EXPECT_EQ(result.out, "");
  };
  refuses({"--t-grad", "1", "--t-comm", "1"}, "--workers");
  refuses({"--t-comm", "1", "--workers", "2"}, "no t_grad");
  refuses({"--t-grad", "1", "--workers", "2"}, "no t_comm");
  for (const char* bad : {"0", "-1", "nan", "inf", "x", ""}) {
    refuses({"--t-grad", bad, "--t-comm", "1", "--workers", "2"}, "--t-grad");
    refuses({"--t-grad", "1", "--t-comm", bad, "--workers", "2"}, "--t-comm");
  }
  refuses({"--t-grad", "1", "--t-comm", "1", "--workers", "0"}, "--workers");
  refuses({"--t-grad", "1", "--t-comm", "1", "--workers", "9", "--batches", "8"},
          "9 workers for 8");
  refuses({"--t-grad", "1", "--t-comm", "1", "--workers", "2", "--batches", "0"}, "--batches");
  refuses({"--t-grad", "1", "--t-comm", "1", "--workers", "2", "--type", "sync"}, "--type");
  refuses({"--t-grad", "1", "--workers", "2", "--rate", "1Gbit/s"}, "--net");
  refuses({"--t-grad", "1", "--workers", "2", "--net", "lenet"}, "--rate");
  refuses({"--t-grad", "1", "--workers", "2", "--net", "lenot", "--rate", "1Gbit/s"}, "lenot");
  refuses({"--t-grad", "1", "--workers", "2", "--net", "lenet", "--rate", "1 parsec"}, "1 parsec");
  refuses({"--t-grad", "1", "--t-comm", "1", "--workers", "2", "--net", "lenet", "--rate", "1Gbit"},
          "say the same");
  refuses(
      {"--t-grad", "1", "--t-comm", "1", "--workers", "2", "--output", "plot", "--file", "a.pdf"},
      "a.pdf");
  refuses({"--t-grad", "1", "--t-comm", "1", "--net", "lenet", "--workers", "1", "--advise"},
          "2 workers");
}

/// Plots the chart as text, without a display, and to a file.
TEST(EstimateCommand, Plots) {
  if (std::system("command -v gnuplot >/dev/null") != 0)
    GTEST_SKIP() << "gnuplot is not installed (make deps; package gnuplot-nox)";
  ::unsetenv("DISPLAY");
  ::unsetenv("WAYLAND_DISPLAY");
  const std::vector<std::string> common{"estimate",  "--t-grad", "0.763",    "--t-comm", "0.21",
                                        "--workers", "8",        "--output", "plot"};
  const Result text = run(common);
  ASSERT_EQ(text.exit, 0) << text.err;
  EXPECT_NE(text.out.find("workers"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("sync-join, distributed"), std::string::npos) << text.out;
  EXPECT_EQ(text.out.find("worst"), std::string::npos) << text.out;
  const Result central = run(plus(common, {"--server", "central"}));
  for (const char* curve : {"best (4.4)", "worst (4.7)"})
    EXPECT_NE(central.out.find(curve), std::string::npos) << central.out;
  std::istringstream lines(text.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;

  const TemporaryFolder folder;
  for (const auto& [name, begins] :
       {std::pair<std::string, std::string>{"it's.svg", "<?xml"}, {"chart.png", "\x89PNG"}}) {
    std::vector<std::string> arguments = common;
    arguments.insert(arguments.end(), {"--file", folder / name});
    const Result drawn = run(arguments);
    ASSERT_EQ(drawn.exit, 0) << drawn.err;
    std::ifstream file(folder / name, std::ios::binary);
    std::string start(begins.size(), '\0');
    file.read(start.data(), static_cast<std::streamsize>(start.size()));
    EXPECT_EQ(start, begins);
  }
}

TEST(EstimateCommand, AdvisesWhatPlanSays) {
  const Result advice = run({"estimate", "--t-grad", "0.02", "--t-comm", "0.01", "--net", "lenet",
                             "--classes", "7", "--workers", "3", "--advise"});
  ASSERT_EQ(advice.exit, 0) << advice.err;
  const Result plan = run({"plan", "--t-grad", "0.02", "--t-comm", "0.01", "--net", "lenet",
                           "--classes", "7", "--machines", "3"});
  EXPECT_EQ(advice.out, plan.out);
  EXPECT_EQ(advice.out.rfind("Pays: ", 0), 0U) << advice.out;
  const Result none =
      run({"estimate", "--t-grad", "1", "--t-comm", "1", "--workers", "3", "--advise"});
  EXPECT_EQ(none.exit, 2);
  EXPECT_NE(none.err.find("give --net, or --from"), std::string::npos) << none.err;
}

/// With a turn for each worker, the i-th has its transfer after i of them: the first is the best
/// case (7.1), the last the worst (7.2), and none takes longer than all at once (7.3).
TEST(Equations, TransfersInTurnsAreNeverSlower) {
  const Costs costs{0.5, 1.0};
  for (int n = 1; n <= 8; ++n) {
    const Interval in_turns = transfer_in_turns(costs, n);
    EXPECT_EQ(in_turns.low, 1 * costs.comm);
    EXPECT_EQ(in_turns.high, n * costs.comm);
    EXPECT_EQ(in_turns.high, transfer_at_once(costs, n));
  }
}

TEST(Rates, AreReadAndWritten) {
  EXPECT_EQ(parse_rate("1Gbit/s"), 125e6);
  EXPECT_EQ(parse_rate("100 Mbit"), 12.5e6);
  EXPECT_EQ(parse_rate("12.5MB/s"), 12.5e6);
  EXPECT_EQ(parse_rate("8kbit"), 1000.0);
  for (const char* gigabit : {"1gbit", "1Gbps", "1gbps", "1Gb/s", "1000 Mb/s", "1000Mbps"})
    EXPECT_EQ(parse_rate(gigabit), 125e6) << gigabit;
  for (const char* bad :
       {"", "1", "Gbit", "1Gbit/h", "-1Gbit", "0Gbit", "nanGbit", "1mb", "1 Gbits"})
    EXPECT_THROW(parse_rate(bad), Error) << bad;
  EXPECT_EQ(rate_text(125e6), "1 Gbit/s");
  EXPECT_EQ(rate_text(117.6875e6), "941.5 Mbit/s");
}

}  // namespace
}  // namespace duplex::tools::testing
