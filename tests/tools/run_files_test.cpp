// The files of a run directory: what is written is what is read.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <filesystem>
#include <limits>

#include "tests/temporary_folder.h"
#include "tests/tools/key_lister.h"
#include "tests/tools/program.h"
#include "tools/run_directory/row_file.h"
#include "tools/run_directory/rows.h"
#include "tools/run_directory/run_files.h"

namespace duplex::tools {
namespace {

using namespace testing;

/// Gives every field a value of its own.
class Filler {
 public:
  void version() {}
  template <class T>
  void field(const char*, T& value, Range = Range::any) {
    fill(value);
  }
  template <class T>
  void later(const char*, T& value) {
    fill(value);
  }
  template <class T>
  void optional(const char*, std::optional<T>& value, Range = Range::any) {
    fill(value.emplace());
  }
  template <class T>
  void nullable(const char*, std::optional<T>& value, Range = Range::any) {
    fill(value.emplace());
  }
  template <class T>
  void unless_zero(const char*, T& value) {
    fill(value);
  }
  void named(const char*, net::Sync& value, net::Sync (*)(const std::string&)) {
    value = net::Sync::split;
  }
  void named(const char*, net::ServerMode& value, net::ServerMode (*)(const std::string&)) {
    value = net::ServerMode::central;
  }
  void named(const char*, net::Shards& value, net::Shards (*)(const std::string&)) {
    value = net::Shards::tensors;
  }
  void unless_usual(const char*, net::WireFormat& value, net::WireFormat (*)(const std::string&)) {
    value.gradients = net::Coding::fp16;
  }
  void on_off(const char*, bool& value) { value = !value; }
  template <class T>
  void group(const char*, std::optional<T>& value) {
    describe(*this, value.emplace());
  }
  template <class Body>
  void group(const char*, bool& there, Body body) {
    there = true;
    body();
  }
  // Columns.
  template <class T>
  void integer(const char*, T& value) {
    fill(value);
  }
  void number(const char*, double& value) { fill(value); }
  void number(const char*, std::optional<double>& value) { fill(value.emplace()); }
  void decimals(const char*, double& value, int) { fill(value); }
  void text(const char*, std::string& value) { fill(value); }
  void either(const char*, bool& value, const char*, const char*) { value = true; }

 private:
  template <class T>
  void fill(T& value) {
    ++number_;
    if constexpr (std::is_same_v<T, bool>) {
      value = true;
    } else if constexpr (std::is_integral_v<T>) {
      value = static_cast<T>(number_);
    } else if constexpr (std::is_floating_point_v<T>) {
      value = number_ + 0.125;
    } else if constexpr (std::is_same_v<T, std::string>) {
      value = "text " + std::to_string(number_);
    } else if constexpr (IsVector<T>::value) {
      for (int i = 0; i < 2; ++i) fill(value.emplace_back());
    } else {
      describe(*this, value);
    }
  }
  int number_ = 100;
};

template <class File>
File filled() {
  File file;
  Filler filler;
  describe(filler, file);
  return file;
}

/// Written, read and written again it is the same, and so it is with nothing but what it must have.
template <class File, class Read>
void expect_round_trip(Read read) {
  const TemporaryFolder folder;
  for (const File& file : {filled<File>(), File{}}) {
    const std::string text = text_of(file);
    write_text(folder / "file", text);
    EXPECT_EQ(text_of(read(folder / "file")), text);
  }
  const auto top = nlohmann::json::parse(text_of(filled<File>()));
  for (const auto& [key, type] : keys_of<File>()) {
    if (key == "epochs") continue;  // A simulation, which all is filled in for, has none.
    EXPECT_TRUE(top.contains(key.substr(0, key.find_first_of(".[")))) << key;
  }
}

TEST(RunFiles, AreReadAsTheyAreWritten) {
  expect_round_trip<RunConfig>(read_config);
  expect_round_trip<RunSummary>(read_summary);
  expect_round_trip<TransportSummary>(read_transport);
  expect_round_trip<ProfileFile>(read_profile_file);

  const TemporaryFolder folder;
  RunConfig config = filled<RunConfig>();
  config.simulated = false;
  config.simulation.reset();
  write_text(folder / "config.json", text_of(config));
  const RunConfig read = read_config(folder / "config.json");
  EXPECT_EQ(read.epochs, config.epochs);
  EXPECT_EQ(read.data->description, config.data->description);
  EXPECT_EQ(read.parallel->sync, net::Sync::split);
  EXPECT_FALSE(read.parallel->overlap);
  EXPECT_FALSE(read.simulation);
  const RunSummary summary = filled<RunSummary>();
  write_text(folder / "summary.json", text_of(summary));
  const RunSummary again = read_summary(folder / "summary.json");
  EXPECT_EQ(again.training->gradient.median, summary.training->gradient.median);
  EXPECT_EQ(again.connections->at(1).kernel_sent_again,
            summary.connections->at(1).kernel_sent_again);
  EXPECT_EQ(again.traffic->exposed_seconds, summary.traffic->exposed_seconds);
}

TEST(RunFiles, HaveNullForWhatIsNoNumber) {
  const TemporaryFolder folder;
  RunSummary summary = filled<RunSummary>();
  summary.accuracy->loss = std::numeric_limits<double>::quiet_NaN();
  summary.training->loss.reset();
  write_text(folder / "summary.json", text_of(summary));
  const auto json = nlohmann::json::parse(read_text(folder / "summary.json"));
  EXPECT_TRUE(json.at("loss").is_null());
  EXPECT_TRUE(json.at("accuracy").at("loss").is_null());
  EXPECT_TRUE(std::isnan(read_summary(folder / "summary.json").accuracy->loss));
}

template <class Row>
void expect_rows(const std::string& row_text) {
  const TemporaryFolder folder;
  const std::string path = folder / "rows.csv";
  Troubles troubles;
  {
    RowFile<Row> file(path, Rows::anew, troubles);
    for (int i = 0; i < 2; ++i) file.write(filled<Row>());
  }
  const std::string text = csv_columns<Row>() + "\n" + row_text + "\n" + row_text + "\n";
  EXPECT_EQ(read_text(path), text);
  EXPECT_EQ(text_of(read_rows<Row>(path, true)), text);
  write_text(path, text.substr(0, text.size() - 2));  // A run that was interrupted.
  EXPECT_EQ(read_rows<Row>(path, false).size(), 1U);
  // It goes on behind its whole rows.
  EXPECT_EQ(keep_rows<Row>(path, [](const Row&) { return true; }).size(), 1U);
  RowFile<Row>(path, Rows::appended, troubles).write(filled<Row>());
  EXPECT_EQ(read_text(path), text);
  EXPECT_EQ(keep_rows<Row>(path, [](const Row&) { return false; }).size(), 0U);
  EXPECT_EQ(read_text(path), csv_columns<Row>() + "\n");
  EXPECT_NO_THROW(troubles.raise());
}

TEST(RunFiles, SayWhatCannotBeWrittenAndGoOn) {
  Troubles troubles;
  RowFile<StepMetrics> full("/dev/full", Rows::anew, troubles);
  for (int i = 0; i < 3; ++i) full.write(filled<StepMetrics>());
  try {
    troubles.raise();
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("/dev/full cannot be written: No space left"),
              std::string::npos)
        << error.what();
  }
  EXPECT_THROW(RowFile<StepMetrics>("/nowhere/metrics.csv", Rows::anew, troubles), Error);
}

/// Returns whether a row could be written to a file that may have so many bytes at most.
bool written_within(rlim_t bytes, const std::string& path) {
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit limit{bytes, before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  Troubles troubles;
  {
    RowFile<StepMetrics> file(path, Rows::appended, troubles);
    setrlimit(RLIMIT_FSIZE, &limit);
    file.write(filled<StepMetrics>());
    setrlimit(RLIMIT_FSIZE, &before);
  }
  std::signal(SIGXFSZ, handler);
  return troubles.first().empty();
}

/// A run whose disk is full for a while comes to its end all the same, and has rows that are whole.
TEST(RunFiles, HaveNoPartOfARow) {
  const TemporaryFolder folder;
  const std::string path = folder / "metrics.csv";
  Troubles troubles;
  RowFile<StepMetrics>(path, Rows::anew, troubles).write(filled<StepMetrics>());
  const std::string whole = read_text(path);
  EXPECT_FALSE(written_within(whole.size() + 20, path));
  EXPECT_EQ(read_text(path), whole);
  EXPECT_TRUE(written_within(2 * whole.size(), path));
  EXPECT_EQ(read_rows<StepMetrics>(path, true).size(), 2U);
}

/// After a power failure a file may have blocks that were never written.
TEST(RunFiles, KeepTheRowsAroundDamagedLines) {
  const TemporaryFolder folder;
  const std::string path = folder / "staleness-0.csv", zeros(100, '\0');
  const std::string columns = csv_columns<StalenessRow>() + "\n";
  const auto all = [](const StalenessRow&) { return true; };
  for (const std::string& tail :
       {zeros, zeros + "\n", zeros + "1,5,0.000,1\n", "1,5,0.0" + zeros, std::string("1,5\n")}) {
    write_text(path, columns + "0,1,2.000,3\n1,2,3.000,4\n" + tail);
    EXPECT_EQ(keep_rows<StalenessRow>(path, all).size(), 2U);
    EXPECT_EQ(read_text(path), columns + "0,1,2.000,3\n1,2,3.000,4\n");
  }
  write_text(path, columns + "0,1,2.000,3\n" + zeros + "2.000,3\n1,2,3.000,4\n");
  EXPECT_THROW(read_rows<StalenessRow>(path, false), Error);
  EXPECT_EQ(keep_rows<StalenessRow>(path, all).size(), 2U);
  EXPECT_EQ(read_rows<StalenessRow>(path, true).size(), 2U);
  write_text(path, zeros);
  EXPECT_EQ(keep_rows<StalenessRow>(path, all).size(), 0U);
  EXPECT_EQ(read_text(path), columns);
}

TEST(RunFiles, HaveRowsThatAreReadAsTheyAreWritten) {
  expect_rows<StepMetrics>(
      "101,102,103.125,104.125,105.125000000,106.125000000,107.125000000,108.125000000,"
      "109.125000000");
  expect_rows<AccuracyRow>("101,102.125,103,104.125,105.125,106.125,107");
  expect_rows<StalenessRow>("101,102,103.125,104");
  expect_rows<net::LedgerRow>("101,sent,102,text 103,104,105,106,107,108,109,110,111");
  expect_rows<net::StepTraffic>("101,102,103,104,105,106,107,108,109,110");

  const TemporaryFolder folder;
  StepMetrics without;
  Troubles troubles;
  RowFile<StepMetrics>(folder / "metrics.csv", Rows::anew, troubles).write(without);
  EXPECT_EQ(read_rows<StepMetrics>(folder / "metrics.csv", true).at(0).loss, std::nullopt);
  write_text(folder / "metrics.csv", csv_columns<StepMetrics>() + "\n0,0,nan,0,0,0,0,0,0\n");
  EXPECT_EQ(read_rows<StepMetrics>(folder / "metrics.csv", true).at(0).loss, std::nullopt);
}

TEST(RunFiles, HaveATraceThatIsReadAsItIsWritten) {
  const TemporaryFolder folder;
  const std::string path = folder / "trace.json";
  const TraceFileEvent event = filled<TraceFileEvent>();
  TraceFileWriter writer(path, {"LeNet"});
  writer.put(event);
  writer.put(event);
  EXPECT_FALSE(std::filesystem::exists(path));
  writer.commit();
  const TraceFile read = read_trace_file(path);
  EXPECT_EQ(read.head.model, "LeNet");
  ASSERT_EQ(read.events.size(), 2U);
  EXPECT_EQ(read.events[1].details->gradient_of_rank, event.details->gradient_of_rank);
  EXPECT_EQ(read.events[1].binds, event.binds);
}

}  // namespace
}  // namespace duplex::tools
