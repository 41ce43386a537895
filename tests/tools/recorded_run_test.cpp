// Run directories that an earlier version has left (tests/tools/recorded_run; of ledgers and trace
// the first lines), and damaged ones.
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "net/ledger/ledger_row.h"
#include "tests/temporary_folder.h"
#include "tests/tools/program.h"
#include "tools/run_directory/row_file.h"
#include "tools/run_directory/rows.h"
#include "tools/run_directory/run_files.h"
#include "tools/run_directory/schema.h"

namespace duplex::tools {
namespace {

using testing::read_text;
using testing::Result;
using testing::run;
using testing::write_text;
namespace fs = std::filesystem;

const std::string recorded = "tests/tools/recorded_run/";

/// The text without the last column, which the recorded runs' program did not have.
std::string without_last_column(const std::string& text) {
  std::istringstream lines(text);
  std::string left;
  for (std::string line; std::getline(lines, line);) left += line.substr(0, line.rfind(',')) + "\n";
  return left;
}

TEST(RecordedRun, IsWrittenToTheLetterAsItWas) {
  for (const std::string run : {"local/", "dist/", "central/"}) {
    const std::string in = recorded + run;
    EXPECT_EQ(text_of(read_config(in + "config.json")), read_text(in + "config.json"));
    for (const std::string file : {"summary.json", "rank-0.json", "rank-1.json"}) {
      if (!fs::exists(in + file)) continue;
      EXPECT_EQ(text_of(read_summary(in + file)), read_text(in + file));
    }
    EXPECT_EQ(text_of(read_rows<StepMetrics>(in + "metrics.csv", true)),
              read_text(in + "metrics.csv"));
    for (const std::string file : {"ledger-0.csv", "ledger-1.csv"}) {
      if (!fs::exists(in + file)) continue;
      EXPECT_EQ(without_last_column(text_of(read_rows<net::LedgerRow>(in + file, true))),
                read_text(in + file));
    }
  }
  const std::string accuracy = recorded + "dist/accuracy.csv",
                    staleness = recorded + "central/staleness-0.csv",
                    profile = recorded + "local/profile.json", trace = recorded + "dist/trace.json";
  EXPECT_EQ(without_last_column(text_of(read_rows<AccuracyRow>(accuracy, true))),
            read_text(accuracy));
  EXPECT_EQ(text_of(read_rows<StalenessRow>(staleness, true)), read_text(staleness));
  EXPECT_EQ(text_of(read_profile_file(profile)), read_text(profile));
  for (const std::string role : {"ps", "worker"}) {
    const std::string path = recorded + "transport/" + transport_file(role);
    EXPECT_EQ(text_of(read_transport(path)), read_text(path));
  }
  const TemporaryFolder folder;
  const TraceFile read = read_trace_file(trace);
  TraceFileWriter writer(folder / "trace.json", read.head);
  for (const TraceFileEvent& event : read.events) writer.put(event);
  writer.commit();
  EXPECT_EQ(nlohmann::json::parse(read_text(folder / "trace.json")),
            nlohmann::json::parse(read_text(trace)));
}

TEST(RecordedRun, OpensInEveryCommandThatReadsRuns) {
  const TemporaryFolder folder;
  const Result page = run({"report", recorded + "local", recorded + "dist", recorded + "central",
                           recorded + "transport", "--output", folder / "page.html"});
  EXPECT_EQ(page.exit, 0) << page.err;
  EXPECT_EQ(page.err, "");
  const std::string html = read_text(folder / "page.html");
  EXPECT_NE(html.find("of the first worker, in the mean of the steps that were traced"),
            std::string::npos);
  EXPECT_NE(html.find("t_comm of the link transport: "), std::string::npos);
  ASSERT_EQ(run({"report", recorded + "dist", "--output", folder / "page.html"}).exit, 0);
  EXPECT_NE(read_text(folder / "page.html").find("t_comm of rank "), std::string::npos);

  const Result table = run({"compare", recorded + "local", recorded + "dist"});
  EXPECT_EQ(table.exit, 0) << table.err;
  EXPECT_NE(table.out.find("100.00%"), std::string::npos) << table.out;
  const Result estimate = run({"estimate", "--from", recorded + "local", "--from",
                               recorded + "transport", "--workers", "2"});
  EXPECT_EQ(estimate.exit, 0) << estimate.err;
  EXPECT_NE(estimate.err.find("(local, LeNet, batch 8)"), std::string::npos) << estimate.err;
  EXPECT_NE(estimate.err.find("(transport, LeNet)"), std::string::npos) << estimate.err;
  EXPECT_EQ(run({"estimate", "--from", recorded + "dist", "--workers", "2"}).exit, 0);
  const Result simulated = run({"simulate", "--net", "lenet", "--from", recorded + "local",
                                "--from", recorded + "transport", "--workers", "2"});
  EXPECT_EQ(simulated.exit, 0) << simulated.err;
  EXPECT_NE(simulated.err.find("owners'"), std::string::npos) << simulated.err;
}

// ---- Damaged files.

/// The text of a file of one key that is another.
std::string changed(const std::string& path, const std::string& pointer, const nlohmann::json& to) {
  nlohmann::json json = nlohmann::json::parse(read_text(path));
  json[nlohmann::json::json_pointer(pointer)] = to;
  return json.dump();
}

TEST(DamagedRunFile, IsNamedWithItsKey) {
  const TemporaryFolder folder;
  const std::string bad = folder / "bad.json";
  const auto refuses = [&](auto read, const std::string& text,
                           const std::vector<std::string>& because) {
    write_text(bad, text);
    try {
      read(bad);
      ADD_FAILURE() << "no error for " << text;
    } catch (const Error& error) {
      const std::string what = error.what();
      EXPECT_EQ(what.rfind(bad + " ", 0), 0U) << what;
      for (const std::string& word : because) EXPECT_NE(what.find(word), std::string::npos) << what;
    }
  };
  const std::string config = recorded + "dist/config.json",
                    summary = recorded + "dist/summary.json",
                    rank = recorded + "central/rank-0.json";
  refuses(read_config, "{", {"damaged", "no JSON"});
  refuses(read_config, "[]", {"damaged"});
  refuses(read_config, "{}", {"damaged", "version"});
  refuses(read_config, R"({"version": 2})", {"another version"});
  refuses(read_config, R"({"version": 1})", {"damaged", "has no network"});
  refuses(read_config, changed(config, "/batch", "8"), {"damaged", "batch is no integer"});
  refuses(read_config, changed(config, "/ranks", -1e30), {"ranks is no integer"});
  refuses(read_config, changed(config, "/ranks", 5000000000), {"ranks is no integer of its size"});
  refuses(read_config, changed(config, "/seed", -1), {"seed is no integer"});
  refuses(read_config, changed(config, "/title", 1), {"title is no text"});
  refuses(read_config, changed(config, "/data", 1), {"data is no object"});
  refuses(read_config, changed(config, "/data/train", "x"), {"data.train is no integer"});
  refuses(read_config, changed(config, "/addresses/1", 1), {"addresses[1] is no text"});
  refuses(read_config, changed(config, "/sync", "both"), {"sync is 'both'", "join"});
  refuses(read_config, changed(config, "/overlap", "yes"), {"overlap is neither on nor off"});
  refuses(read_config, changed(config, "/replayed", 0), {"replayed is neither true nor false"});
  refuses(read_summary, changed(summary, "/t_grad_s", 3), {"t_grad_s is no object"});
  refuses(read_summary, changed(summary, "/step_s/median", -1), {"step_s.median is below zero"});
  refuses(read_summary, changed(summary, "/traffic/t_comm_s", "1"),
          {"traffic.t_comm_s is no number"});
  refuses(read_summary, changed(summary, "/connections/0/peer", nullptr),
          {"connections[0].peer is no integer"});
  refuses(read_summary, changed(rank, "/traffic", nullptr), {"traffic is no object"});
  nlohmann::json without = nlohmann::json::parse(read_text(rank));
  without.erase("traffic");
  refuses(read_summary, without.dump(), {"has no traffic"});
  refuses(read_transport, R"({"version": 1, "command": "transport", "title": "LeNet"})",
          {"has no t_comm"});
  refuses(read_profile_file, changed(recorded + "local/profile.json", "/layers/2/forward_s", -1),
          {"layers[2].forward_s is below zero"});
  refuses(read_trace_file, changed(recorded + "dist/trace.json", "/otherData/version", 2),
          {"another version"});
  refuses(read_trace_file, changed(recorded + "dist/trace.json", "/traceEvents/3/ph", 1),
          {"traceEvents[3].ph is no text"});
  const auto metrics = [](const std::string& path) { return read_rows<StepMetrics>(path, true); };
  refuses(metrics, "step,loss\n", {"other columns"});
  for (const char* row : {"0,0,,0,1,0,1,0", "0,0,,0,1,0,1,0,0,0", "0,0,,0,x,0,1,0,0",
                          "0,0,,0,,0,1,0,0", "-1,0,,0,1,0,1,0,0", "0,0,,0,inf,0,1,0,0", ""})
    refuses(metrics, csv_columns<StepMetrics>() + "\n" + row + "\n",
            {"damaged", "is no row of it"});
  refuses(metrics, csv_columns<StepMetrics>() + "\n0,0,,0,1" + std::string(1, '\0') + ",0,1,0,0\n",
          {"damaged"});
  refuses([](const std::string& path) { return read_rows<net::LedgerRow>(path, true); },
          csv_columns<net::LedgerRow>() + "\n0,lost,1,weights,0,0,0,1,0,0,0\n",
          {"is no row of it"});
  EXPECT_THROW(read_config(folder / "none.json"), Error);
}

TEST(ForeignRunFile, IsReadWithKeysThatNobodyKnows) {
  const TemporaryFolder folder;
  write_text(folder / "config.json", changed(recorded + "dist/config.json", "/future/key", 1));
  EXPECT_EQ(read_config(folder / "config.json").title, "LeNet");
}

}  // namespace
}  // namespace duplex::tools
