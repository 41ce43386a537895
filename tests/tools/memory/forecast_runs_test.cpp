// Tests what `nets --memory` says against what processes of the program take.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/error.h"
#include "tests/temporary_folder.h"
#include "tests/tools/memory/onednn_only.h"
#include "tests/tools/program.h"
#include "tools/text/size.h"

namespace duplex::tools {
namespace {

using testing::has_onednn;
using testing::run;
using testing::without_onednn;

TEST(Size, CountsIn1024sWithAnI) {
  EXPECT_EQ(parse_size("8GiB"), std::size_t{8} << 30);
  EXPECT_EQ(parse_size("512 MiB"), std::size_t{512} << 20);
  EXPECT_EQ(parse_size("1.5Gi"), std::size_t{3} << 29);
  EXPECT_EQ(parse_size("24GB"), std::size_t{24'000'000'000});
  EXPECT_EQ(parse_size("3k"), 3000U);
  EXPECT_EQ(parse_size("700"), 700U);
  EXPECT_EQ(mebibytes(std::size_t{1234} << 20), "1,234.0");
  EXPECT_EQ(mebibytes(1 << 19), "0.5");
  for (const char* wrong : {"", "GiB", "8Xi", "8 GiBs", "-1GiB", "0", "nan", "1e30"})
    EXPECT_THROW(parse_size(wrong), Error) << wrong;
}

// ---- Runs of the program.

/// A column of `nets --memory`, in MiB.
struct Column {
  double program = 0.0, workspace = 0.0, received = 0.0, maps = 0.0, sum = 0.0;
};

class ForecastOfRuns : public ::testing::Test {
 protected:
  ForecastOfRuns() { testing::write_squares(data_.path(), 80, 10); }

  /// Returns the columns of `nets --memory` for the network of training().
  std::vector<Column> forecast(const std::vector<std::string>& more) const {
    const testing::Result result = run(testing::plus(
        testing::plus({"nets", "--memory", "--threads", "1", "--classes", "10"}, network_), more));
    EXPECT_EQ(result.exit, 0) << result.err;
    std::vector<Column> columns(4);
    std::istringstream lines(result.out);
    // A cell may be empty, so a cell goes by where it ends.
    std::vector<std::size_t> ends;
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(line.size(), 80U) << line;
      if (line.rfind("---", 0) == 0 && ends.empty())
        for (std::size_t at = line.find(' '); at != std::string::npos; at = line.find(' ', at + 2))
          ends.push_back(std::min(line.find(' ', at + 2), line.size()));
      const auto take = [&](const char* name, double Column::*value) {
        if (line.rfind(name, 0) != 0) return;
        for (std::size_t i = 0; i < ends.size() && ends[i] <= line.size(); ++i) {
          const std::size_t begin = line.rfind(' ', ends[i] - 1);
          columns.at(i).*value = std::atof(line.substr(begin, ends[i] - begin).c_str());
        }
      };
      take("program", &Column::program);
      take("workspace", &Column::workspace);
      take("gradients received", &Column::received);
      take("maps that come", &Column::maps);
      take("sum", &Column::sum);
    }
    columns.resize(ends.size());
    return columns;
  }

  std::vector<std::string> training(const std::vector<std::string>& more) const {
    return testing::plus(testing::plus({"--datadir", data_.path(), "--threads", "1", "--batches",
                                        "3", "--logdir", folder_ / "run"},
                                       network_),
                         more);
  }
  double peak_of(const std::string& summary) const {
    const auto json = nlohmann::json::parse(testing::read_text(folder_ / ("run/" + summary)));
    return json.at("peak_memory_bytes").get<double>() / 1048576.0;
  }
  /// Runs the ranks of a training on loopback, and returns the peak of each.
  std::vector<double> together(int ranks, const std::vector<std::string>& more) const {
    std::filesystem::remove_all(folder_ / "run");
    std::string nodes;
    for (const int port : testing::free_ports(ranks))
      nodes += "127.0.0.1:" + std::to_string(port) + "\n";
    testing::write_text(folder_ / "nodes", nodes);
    std::vector<testing::Process> processes;
    for (int rank = 0; rank < ranks; ++rank) {
      processes.emplace_back(testing::plus(
          testing::plus({"dist"}, training(more)),
          {"--timeout", "20", "--nodefile", folder_ / "nodes", "--index", std::to_string(rank)}));
    }
    std::vector<double> peaks;
    for (int rank = 0; rank < ranks; ++rank) {
      const testing::Result result = processes[static_cast<std::size_t>(rank)].wait();
      EXPECT_EQ(result.exit, 0) << result.err;
      peaks.push_back(peak_of("rank-" + std::to_string(rank) + ".json"));
    }
    return peaks;
  }

  /// A process took what was forecast, or less where the forecast says "at most": gradients may
  /// come later, and oneDNN touches only a part of the workspace on some processors. The tolerance
  /// is for what differs between two processes of the same program, such as which pages of
  /// libraries they have touched.
  static void expect_took(const Column& forecast, double took) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP()
        << "the training has run; the memory that it took cannot be told in a build with a "
           "sanitizer, which has memory of its own: "
        << took << " MiB for a forecast of " << forecast.sum;
#endif
    constexpr double tolerance = 0.05, mib = 1.0;
    const double beyond = took - forecast.program, most = forecast.sum - forecast.program;
    EXPECT_LE(beyond, most * (1.0 + tolerance) + mib);
    const double least = most - forecast.received - forecast.maps - forecast.workspace;
    EXPECT_GE(beyond, least * (1.0 - tolerance) - mib);
  }

  TemporaryFolder data_, folder_;
  /// Its parameters take most of the memory, so that a copy of them that is forgotten shows.
  std::vector<std::string> network_{"--net", "resnet34", "--input", "32", "--batch", "4"};
};

TEST_F(ForecastOfRuns, AloneIsWhatItTakes) {
  const std::vector<Column> columns = forecast({"--optimizer", "adam"});
  ASSERT_EQ(columns.size(), 4U);
  const testing::Result result = run(testing::plus({"local"}, training({"--optimizer", "adam"})));
  ASSERT_EQ(result.exit, 0) << result.err;
  expect_took(columns[0], peak_of("summary.json"));
}

/// The average is saved in the place of the weights.
TEST_F(ForecastOfRuns, AMovingAverageIsWhatItTakes) {
  const std::vector<Column> columns = forecast({"--ema", "--server", "distributed"});
  ASSERT_EQ(columns.size(), 2U);
  const testing::Result result = run(testing::plus({"local"}, training({"--ema", "0.9"})));
  ASSERT_EQ(result.exit, 0) << result.err;
  expect_took(columns[0], peak_of("summary.json"));
  expect_took(columns[1], together(2, {"--ema", "0.9"})[0]);
}

/// Here activations take most, and what operations keep and share.
TEST_F(ForecastOfRuns, ActivationsAreWhatTheyTake) {
  network_ = {"--net", "squeezenet", "--input", "160", "--batch", "8"};
  const std::vector<Column> columns = forecast({});
  ASSERT_EQ(columns.size(), 4U);
  const testing::Result result = run(testing::plus({"local"}, training({})));
  ASSERT_EQ(result.exit, 0) << result.err;
  expect_took(columns[0], peak_of("summary.json"));
}

TEST_F(ForecastOfRuns, WorkersAndOwnersAreWhatTheyTake) {
  const std::vector<std::string> way{"--server", "distributed", "--optimizer", "adam"};
  const std::vector<Column> columns = forecast(way);
  ASSERT_EQ(columns.size(), 2U);
  for (const double peak : together(2, way)) expect_took(columns[1], peak);
}

TEST_F(ForecastOfRuns, WorkersAndTheirServerAreWhatTheyTake) {
  for (const char* sync : {"join", "none"}) {
    const std::vector<std::string> way{"--server", "central", "--sync", sync, "--momentum", "0.9"};
    const std::vector<Column> columns = forecast(way);
    ASSERT_EQ(columns.size(), 3U);
    const std::vector<double> peaks = together(3, way);
    expect_took(columns[2], peaks[0]);
    expect_took(columns[1], peaks[1]);
    expect_took(columns[1], peaks[2]);
  }
}

/// The first rank ends with the weights of the whole network.
TEST_F(ForecastOfRuns, RanksThatHaveAPartAreWhatTheyTake) {
  for (const std::vector<std::string>& way :
       {std::vector<std::string>{"--strategy", "hybrid", "--optimizer", "adam"},
        std::vector<std::string>{"--strategy", "filter"},
        std::vector<std::string>{"--strategy", "pipeline", "--micro-batches", "4", "--in-flight",
                                 "1", "--momentum", "0.9"}}) {
    const std::vector<Column> columns = forecast(way);
    ASSERT_EQ(columns.size(), 3U);
    const std::vector<double> peaks = together(2, way);
    expect_took(columns[1], peaks[0]);
    expect_took(columns[2], peaks[1]);
  }
}

TEST_F(ForecastOfRuns, PartsThatExchangeFactorsAreWhatTheyTake) {
  network_ = {"--net", "alexnet", "--input", "131", "--batch", "4"};
  const std::vector<std::string> way{"--strategy",      "pipeline", "--stages",  "1:2@fc6",
                                     "--micro-batches", "2",        "--factors", "on",
                                     "--momentum",      "0.9"};
  const std::vector<Column> columns = forecast(testing::plus(way, {"--workers", "3"}));
  ASSERT_EQ(columns.size(), 3U);  // Alone, the first rank, and the one that takes most.
  expect_took(columns[2], together(3, way)[2]);
}

/// A server copies all that it has for each checkpoint, and gives the memory back.
TEST_F(ForecastOfRuns, CheckpointsAreWhatTheyTake) {
  const std::vector<std::string> way{"--server", "central",     "--sync",
                                     "none",     "--optimizer", "adam"};
  const std::vector<Column> columns = forecast(testing::plus(way, {"--checkpoints"}));
  ASSERT_EQ(columns.size(), 3U);
  expect_took(columns[2], together(3, testing::plus(way, {"--checkpoint-every", "1"}))[0]);
}

// ---- What the command says.

TEST(NetsMemory, SaysWhichBatchFits) {
  if (!has_onednn()) GTEST_SKIP() << without_onednn;
  const auto sum_of = [](int images) {
    const testing::Result table = run({"nets", "lenet", "--memory", "--threads", "1", "--server",
                                       "central", "--batch", std::to_string(images)});
    const std::size_t row = table.out.find("\nsum");
    return row == std::string::npos ? 0.0 : std::atof(table.out.c_str() + row + 4);
  };
  // The program itself takes more where a sanitizer is in it.
  const double room = std::ceil(sum_of(1)) + 50.0;
  const testing::Result result =
      run({"nets", "lenet", "--memory", "--fits", std::to_string(static_cast<int>(room)) + "MiB",
           "--threads", "1"});
  EXPECT_EQ(result.exit, 0) << result.err;
  const std::string key = "alone";
  const std::size_t at = result.out.rfind(key);
  ASSERT_NE(at, std::string::npos);
  const int batch = std::atoi(result.out.c_str() + at + key.size());
  EXPECT_GT(batch, 50);
  // That batch has room, and one that is larger by a tenth has not. Every call measures the
  // program's own memory anew, which differs by a MiB or two.
  EXPECT_LE(sum_of(batch), room + 3.0);
  EXPECT_GT(sum_of(batch + batch / 10), room);
}

/// The least batch is one of which every worker has an image.
TEST(NetsMemory, SearchesFromTheLeastBatchThatCanBeShared) {
  if (!has_onednn()) GTEST_SKIP() << without_onednn;
  for (const char* sync : {"join", "split"}) {
    const testing::Result result =
        run({"nets", "lenet", "--memory", "--batch", "128", "--sync", sync, "--share", "100:1",
             "--fits", "1GiB", "--threads", "1"});
    EXPECT_EQ(result.exit, 0) << result.err;
    EXPECT_EQ(result.out.find("none"), std::string::npos) << result.out;
    const testing::Result none = run({"nets", "lenet", "--memory", "--batch", "128", "--sync", sync,
                                      "--share", "100:1", "--fits", "1MiB", "--threads", "1"});
    EXPECT_NE(none.out.find(std::string("for a batch of ") +
                            (sync == std::string("join") ? "51" : "101")),
              std::string::npos)
        << none.out;
  }
}

TEST(NetsMemory, SaysWhatTooLittleMemoryLacks) {
  if (!has_onednn()) GTEST_SKIP() << without_onednn;
  const testing::Result result =
      run({"nets", "alexnet", "--memory", "--fits", "300MiB", "--threads", "1"});
  EXPECT_EQ(result.exit, 1);
  EXPECT_NE(result.err.find("not even a batch of 1 fits in 300.0 MiB"), std::string::npos)
      << result.err;
  EXPECT_NE(result.err.find("MiB are needed"), std::string::npos) << result.err;
}

TEST(NetsMemory, RefusesWhatMakesNoSense) {
  for (const auto& wrong : std::vector<std::vector<std::string>>{
           {"nets", "lenet", "--memory", "--batch", "0"},
           {"nets", "lenet", "--memory", "--device", "reference", "--fits", "1GiB"},
           {"nets", "lenet", "--memory", "--device", "cudaX"},
           {"nets", "lenet", "--memory", "--device", "cuda:banana"},
           {"nets", "lenet", "--memory", "--optimizer", "lbfgs"},
           {"nets", "lenet", "--memory", "--optimizer", "adam", "--momentum", "0.9"},
           {"nets", "lenet", "--memory", "--fits", "much"},
           {"nets", "lenet", "--memory", "--workers", "0"},
           {"nets", "lenet", "--memory", "--strategy", "owt", "--fits", "1GiB"},
           {"nets", "lenet", "--memory", "--strategy", "owt", "--sync", "none"},
           {"nets", "lenet", "--memory", "--strategy", "owt", "--ema"},
           {"nets", "lenet", "--memory", "--strategy", "pipeline", "--workers", "40"},
           {"nets", "lenet", "--memory", "--micro-batches", "2"},
           {"nets", "lenet", "--memory", "--device", "replay:0.1"},
           {"nets", "lenet", "--memory", "--sync", "split", "--batch", "1"},
           {"nets", "lenet", "--batch", "8"},
           {"nets", "--memory"}}) {
    const testing::Result result = run(wrong);
    EXPECT_EQ(result.exit, 2) << wrong.back() << "\n" << result.out << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
}

/// For a GPU it needs none.
TEST(NetsMemory, KnowsAGpuFromAfar) {
  const testing::Result result = run({"nets", "resnet34", "--memory", "--device", "cuda",
                                      "--precision", "bf16", "--fits", "24GiB"});
  EXPECT_EQ(result.exit, 0) << result.err;
  EXPECT_NE(result.out.find("MiB of the GPU"), std::string::npos);
  EXPECT_NE(result.out.find("MiB of the host"), std::string::npos);
  EXPECT_NE(result.out.find("pinned"), std::string::npos);
}

}  // namespace
}  // namespace duplex::tools
