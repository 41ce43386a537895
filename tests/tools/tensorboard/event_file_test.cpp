// Tests the event files of --tensorboard: by bytes worked out by hand, by a reader of our own, and
// by TensorBoard's where it is installed.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "core/error.h"
#include "tests/tools/tensorboard/event_reader.h"
#include "tests/tools/training_runs.h"
#include "tools/run_directory/row_file.h"
#include "tools/run_directory/rows.h"
#include "tools/run_directory/run_files.h"
#include "tools/tensorboard/event_file.h"
#include "tools/text/table.h"

namespace duplex::tools::testing {
namespace {

namespace fs = std::filesystem;

std::string hex(const std::string& bytes) {
  std::string text;
  for (const char c : bytes) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(c));
    text += digits;
  }
  return text;
}

/// wall_time 1.5 is 0x3ff8 and zeros, step 300 is the varint ac 02, 0.5 as a float 0x3f000000.
TEST(EventFile, WritesMessagesAsProtocolBuffersHaveThem) {
  EXPECT_EQ(hex(version_event(1.5)),
            "09000000000000f83f"
            "1a0d627261696e2e4576656e743a32");
  EXPECT_EQ(hex(start_event(1.5, 300)), "09000000000000f83f10ac023a020801");
  EXPECT_EQ(hex(scalars_event(1.5, 300, {{"ab", 0.5}, {"c", -2.0}})),
            "09000000000000f83f10ac02"
            "2a15"
            "0a090a026162150000003f"
            "0a080a016315000000c0");
}

/// TensorBoard's own RecordWriter has written these bytes.
TEST(EventFile, FramesRecordsAsTensorBoardDoes) {
  EXPECT_EQ(hex(tf_record("abc") + tf_record("")),
            "0300000000000000b099490e6162636e57f121"
            "000000000000000029039807d8ea82a2");
  const std::vector<std::string> data{"", "abc", std::string(70000, 'x')};
  std::string file;
  for (const std::string& each : data) file += tf_record(each);
  EXPECT_EQ(records_of(file), data);
  EXPECT_EQ(file.size(), 3U * 16U + 3U + 70000U);
  for (std::size_t at = 0; at < 40; ++at) {
    std::string damaged = file;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    EXPECT_THROW(records_of(damaged), std::runtime_error) << at;
  }
}

/// A record that the disk has no room for leaves those before it whole, and is said once.
TEST(EventFile, AFullDiskCostsOnlyTheEvents) {
  const TemporaryFolder folder;
  Troubles troubles;
  std::string path;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  ::testing::internal::CaptureStderr();
  {
    EventFile file(folder / "events", false, troubles);
    path = file.path();
    file.begin(0);
    const rlimit small{1000, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
    for (std::uint64_t step = 0; step < 100; ++step) file.write(step, {{"train/loss", 1.0}});
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  }
  const std::string said = ::testing::internal::GetCapturedStderr();
  ::signal(SIGXFSZ, handler);
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  EXPECT_NE(said.find(path + " cannot be written: File too large; the training goes on"),
            std::string::npos)
      << said;
  EXPECT_THROW(troubles.raise(), Error);
  const std::vector<Event> events = read_events(path);
  EXPECT_GT(events.size(), 10U);
  EXPECT_LT(events.size(), 30U);
  for (std::size_t i = 1; i < events.size(); ++i) EXPECT_EQ(events[i].step, i - 1);
}

TEST(EventFile, NamesSortAndAnotherRunIsRefused) {
  const TemporaryFolder folder;
  Troubles troubles;
  { const EventFile unused(folder / "a/b", false, troubles); }
  EXPECT_TRUE(folder.files().empty());
  std::vector<std::string> paths;
  for (int run = 0; run < 3; ++run) {
    EventFile file(folder / "a/b", run > 0, troubles);
    file.begin(static_cast<std::uint64_t>(7 * run));
    paths.push_back(file.path());
  }
  EXPECT_TRUE(std::is_sorted(paths.begin(), paths.end()));
  EXPECT_NE(paths[0].find("/events.out.tfevents."), std::string::npos);
  EXPECT_FALSE(read_events(paths[0]).back().starts);
  EXPECT_EQ(read_events(paths[0]).front().version, "brain.Event:2");
  EXPECT_TRUE(read_events(paths[2]).back().starts);
  EXPECT_EQ(read_events(paths[2]).back().step, 15U);
  EXPECT_THROW(EventFile(folder / "a/b", false, troubles), Error);
}

class TensorBoard : public TrainingRuns {
 protected:
  /// All events of a folder, file by file.
  std::vector<Event> events(const std::string& name) const {
    std::vector<std::string> paths;
    for (const auto& entry : fs::directory_iterator(folder_ / name)) paths.push_back(entry.path());
    std::sort(paths.begin(), paths.end());
    std::vector<Event> all;
    for (const std::string& path : paths)
      for (Event& event : read_events(path)) all.push_back(std::move(event));
    return all;
  }
  std::vector<StepMetrics> metrics(const std::string& name) const {
    return read_rows<StepMetrics>(folder_ / (name + "/" + metrics_file), true);
  }
};

TEST_F(TensorBoard, HasTheRowsOfMetricsAndAccuracy) {
  const Result result = run(arguments("local", "run", 8,
                                      {"--batches", "30", "--test-every", "1", "--lr-steps", "10",
                                       "--tensorboard", folder_ / "tb"}));
  ASSERT_EQ(result.exit, 0) << result.err;
  const std::vector<StepMetrics> steps = metrics("run");
  const std::vector<AccuracyRow> tests = read_rows<AccuracyRow>(folder_ / "run/accuracy.csv", true);
  ASSERT_EQ(steps.size(), 30U);
  ASSERT_EQ(tests.size(), 3U);
  std::size_t step = 0, test = 0;
  for (const Event& event : events("tb")) {
    EXPECT_GT(event.wall, 1.7e9);
    if (event.scalars.count("train/loss") > 0) {
      const StepMetrics& row = steps.at(step++);
      EXPECT_EQ(event.step, row.step + 1);
      EXPECT_FLOAT_EQ(event.scalars.at("train/loss"), static_cast<float>(*row.loss));
      EXPECT_FLOAT_EQ(event.scalars.at("train/learning_rate"), static_cast<float>(row.rate));
      EXPECT_NEAR(event.scalars.at("train/images_per_second") * row.total, 8.0, 1e-3);
      EXPECT_EQ(event.scalars.size(), 3U);
    }
    if (event.scalars.count("test/top1") > 0) {
      const AccuracyRow& row = tests.at(test++);
      EXPECT_EQ(event.step, row.step);
      EXPECT_FLOAT_EQ(event.scalars.at("test/top1"), static_cast<float>(row.top1));
      EXPECT_FLOAT_EQ(event.scalars.at("test/top5"), static_cast<float>(row.top5));
      EXPECT_FLOAT_EQ(event.scalars.at("test/loss"), static_cast<float>(*row.loss));
    }
  }
  EXPECT_EQ(step, 30U);
  EXPECT_EQ(test, 3U);
}

/// The first worker of dist alone writes, what has crossed its wire, too.
TEST_F(TensorBoard, HasTheBytesOnTheWire) {
  for (Process& process :
       start("ranks", 2, 4, {"--batches", "12", "--tensorboard", folder_ / "wire"})) {
    const Result result = process.wait();
    ASSERT_EQ(result.exit, 0) << result.err;
  }
  const std::vector<StepMetrics> steps = metrics("ranks");
  std::size_t files = 0, step = 0;
  for (const auto& entry : fs::directory_iterator(folder_ / "wire"))
    files += entry.exists() ? 1 : 0;
  EXPECT_EQ(files, 1U);
  double sent = 0.0;
  for (const Event& event : events("wire")) {
    if (event.scalars.count("train/loss") == 0) continue;
    const StepMetrics& row = steps.at(step++);
    EXPECT_FLOAT_EQ(event.scalars.at("wire/seconds_waiting"), static_cast<float>(row.await));
    EXPECT_NEAR(event.scalars.at("train/images_per_second") * row.total, 8.0, 1e-3);
    sent += static_cast<double>(event.scalars.at("wire/bytes_sent"));
  }
  EXPECT_EQ(step, 12U);
  // Each rank owns half of the weights, and a step sends gradients for one half and the other as
  // weights: about all of them, which the ledger has to the byte.
  const std::string traffic = read_text(folder_ / "ranks/traffic-0.csv");
  double counted = 0.0;
  std::istringstream rows(traffic);
  std::string line;
  std::getline(rows, line);
  while (std::getline(rows, line)) counted += std::stod(line.substr(line.find(',') + 1));
  EXPECT_NEAR(sent / counted, 1.0, 0.15);
}

/// The events of a killed run stay, and a run that goes on says from which step on it counts.
TEST_F(TensorBoard, GoesOnInAFileOfItsOwnAfterAKill) {
  const std::vector<std::string> flags{"--batches", "3000",          "--checkpoint-every",
                                       "20",        "--tensorboard", folder_ / "tb"};
  {
    const Process killed(arguments("local", "run", 8, flags));
    await_bytes(folder_ / "run/metrics.csv", 8000);
    killed.kill(SIGKILL);
  }
  const std::vector<Event> before = events("tb");  // All of it is whole.
  ASSERT_GT(before.size(), 40U);
  std::vector<std::string> again = arguments("dist", "run", 8, flags);
  again[0] = "local";
  again[static_cast<std::size_t>(std::find(again.begin(), again.end(), "3000") - again.begin())] =
      std::to_string(before.back().step + 60);
  again.emplace_back("--resume");
  const Result result = run(again);
  ASSERT_EQ(result.exit, 0) << result.err;
  const std::vector<Event> all = events("tb");
  const auto start = std::find_if(all.begin(), all.end(), [](const Event& e) { return e.starts; });
  ASSERT_NE(start, all.end());
  EXPECT_EQ(static_cast<std::size_t>(start - all.begin()), before.size() + 1);
  EXPECT_GT(start->step, 20U);
  EXPECT_EQ(start->step % 20, 1U);
  EXPECT_EQ((start + 1)->step, start->step);
  EXPECT_EQ(all.back().step, before.back().step + 60);
  EXPECT_NE(result.err.find("goes on after " + grouped(static_cast<std::int64_t>(start->step) - 1)),
            std::string::npos)
      << result.err;
  const Result anew =
      run(arguments("local", "other", 8, {"--batches", "2", "--tensorboard", folder_ / "tb"}));
  EXPECT_EQ(anew.exit, 2);
  EXPECT_NE(anew.err.find("holds events of another run"), std::string::npos) << anew.err;
}

TEST_F(TensorBoard, RefusesWhatIsNoFolder) {
  write_text(folder_ / "file", "x");
  const auto refuses = [&](const std::string& path, const std::string& why) {
    for (const char* more : {"", "--quiet"}) {
      std::vector<std::string> words =
          arguments("local", "run", 8, {"--batches", "2", "--tensorboard", path});
      if (*more != '\0') words.emplace_back(more);
      const Result result = run(words);
      EXPECT_EQ(result.exit, 1) << result.err;
      EXPECT_NE(result.err.find("--tensorboard " + path + ": " + why), std::string::npos)
          << result.err;
      EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
      EXPECT_FALSE(fs::exists(folder_ / "run"));
    }
  };
  refuses(folder_ / "file", "cannot be made: Not a directory");
  refuses(folder_ / "file/below", "cannot be made: Not a directory");
  refuses("/proc/duplex", "cannot be made: ");
  const Result ranks = run({"launch", "--local", "2", "--", "--net", "lenet", "--datadir",
                            data_.path(), "--batches", "2", "--timeout", "20", "--tensorboard",
                            folder_ / "file", "--logdir", folder_ / "ranks"});
  EXPECT_EQ(ranks.exit, 1) << ranks.err;
  EXPECT_NE(ranks.err.find("--tensorboard " + (folder_ / "file: cannot be made")),
            std::string::npos)
      << ranks.err;
  if (::geteuid() != 0) {
    fs::create_directory(folder_ / "closed");
    fs::permissions(folder_ / "closed", fs::perms::owner_read | fs::perms::owner_exec);
    refuses(folder_ / "closed", "cannot be written: Permission denied");
  }
}

/// TensorBoard's reader finds the same numbers.
TEST_F(TensorBoard, ItsOwnReaderAgrees) {
  const char* const named = std::getenv("PYTHON");
  const std::string python = named == nullptr || *named == '\0' ? "python3" : named;
  if (std::system((python + " -c 'import tensorboard.backend.event_processing.event_accumulator' "
                            "> /dev/null 2>&1")
                      .c_str()) != 0)
    GTEST_SKIP() << python << " has no package tensorboard (PYTHON= names another)";
  const std::vector<std::string> flags{"--checkpoint-every", "5",           "--test-every", "1",
                                       "--tensorboard",      folder_ / "tb"};
  ASSERT_EQ(run(arguments("local", "run", 8, plus(flags, {"--batches", "20"}))).exit, 0);
  std::vector<std::string> again =
      arguments("dist", "run", 8, plus(flags, {"--batches", "30", "--resume"}));
  again[0] = "local";
  ASSERT_EQ(run(again).exit, 0);
  write_text(folder_ / "read.py",
             "import sys\n"
             "from tensorboard.backend.event_processing.event_accumulator import EventAccumulator\n"
             "events = EventAccumulator(sys.argv[1], size_guidance={'scalars': 0})\n"
             "events.Reload()\n"
             "for tag in ('train/loss', 'test/top1'):\n"
             "    for e in events.Scalars(tag):\n"
             "        print(tag, e.step, repr(e.value))\n");
  ASSERT_EQ(std::system((python + " '" + folder_ / "read.py' '" + folder_ / "tb' > '" +
                         folder_ / "out' 2> '" + folder_ / "err'")
                            .c_str()),
            0)
      << read_text(folder_ / "err");
  std::ifstream out(folder_ / "out");
  std::string tag;
  std::uint64_t step = 0;
  double value = 0.0;
  const std::vector<StepMetrics> steps = metrics("run");
  const std::vector<AccuracyRow> tests = read_rows<AccuracyRow>(folder_ / "run/accuracy.csv", true);
  ASSERT_EQ(steps.size(), 30U);
  std::size_t losses = 0, accuracies = 0;
  while (out >> tag >> step >> value) {
    if (tag == "train/loss") {
      EXPECT_EQ(step, losses + 1);
      EXPECT_FLOAT_EQ(static_cast<float>(value), static_cast<float>(*steps.at(losses++).loss));
    } else {
      EXPECT_EQ(step, tests.at(accuracies).step);
      EXPECT_FLOAT_EQ(static_cast<float>(value), static_cast<float>(tests.at(accuracies++).top1));
    }
  }
  EXPECT_EQ(losses, 30U);
  EXPECT_EQ(accuracies, tests.size());
}

}  // namespace
}  // namespace duplex::tools::testing
