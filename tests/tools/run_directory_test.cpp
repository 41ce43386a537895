// docs/run-directory.md against the code: its tables have every key and every column; who owns a
// directory.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <fstream>
#include <iterator>
#include <memory>
#include <thread>
#include <vector>

#include "core/error.h"
#include "tests/temporary_folder.h"
#include "tests/tools/key_lister.h"
#include "tests/tools/program.h"
#include "tools/run_directory/evaluation_file.h"
#include "tools/run_directory/run_directory.h"
#include "tools/run_directory/weights_note.h"

namespace duplex::tools {
namespace {

using namespace testing;

const std::string recorded = "tests/tools/recorded_run/";

/// The first two columns of the table under a heading of the page.
Keys table_of(const std::string& heading) {
  std::ifstream page("docs/run-directory.md");
  EXPECT_TRUE(page) << "docs/run-directory.md: the tests are to be run from the root of the tree";
  Keys rows;
  std::string line;
  while (std::getline(page, line) && line != heading) {
  }
  while (std::getline(page, line) && line.rfind('#', 0) != 0) {
    if (line.rfind("| `", 0) != 0) continue;
    const std::size_t end = line.find("` | ", 3);
    const std::string key = line.substr(3, end - 3), rest = line.substr(end + 4);
    EXPECT_TRUE(rows.emplace(key, rest.substr(0, rest.find(" |"))).second) << key << " twice";
  }
  return rows;
}

TEST(RunDirectoryPage, HasEveryKeyAndColumnAndNoOther) {
  EXPECT_EQ(table_of("## config.json"), keys_of<RunConfig>());
  EXPECT_EQ(table_of("## summary.json"), keys_of<RunSummary>());
  EXPECT_EQ(table_of("### quartiles"), keys_of<Quartiles>());
  EXPECT_EQ(table_of("## transport-ROLE.json"), keys_of<TransportSummary>());
  EXPECT_EQ(table_of("### directions"), keys_of<DirectionTimes>());
  EXPECT_EQ(table_of("## profile.json"), keys_of<ProfileFile>());
  EXPECT_EQ(table_of("## trace.json"), keys_of<TraceFile>());
  EXPECT_EQ(table_of("## evaluation.json"), keys_of<EvaluationFile>());
  EXPECT_EQ(table_of("## checkpoint.safetensors"), keys_of<WeightsNote>());
  EXPECT_EQ(table_of("## metrics.csv"), columns_of<StepMetrics>());
  EXPECT_EQ(table_of("## accuracy.csv"), columns_of<AccuracyRow>());
  EXPECT_EQ(table_of("## staleness-RANK.csv"), columns_of<StalenessRow>());
  EXPECT_EQ(table_of("## ledger-RANK.csv"), columns_of<net::LedgerRow>());
  EXPECT_EQ(table_of("## traffic-RANK.csv"), columns_of<net::StepTraffic>());
  std::ifstream page("docs/run-directory.md");
  const std::string text((std::istreambuf_iterator<char>(page)), {});
  EXPECT_NE(text.find("says `version` " + std::to_string(run_files_version)), std::string::npos);
}

/// The files of a recorded run have only keys that the page has.
TEST(RunDirectoryPage, HasTheKeysOfRecordedFiles) {
  const auto check = [](const std::string& path, const Keys& keys) {
    const auto json = nlohmann::json::parse(read_text(path));
    for (const auto& [key, value] : json.items()) {
      const auto found = keys.lower_bound(key);
      ASSERT_NE(found, keys.end()) << path << ": " << key;
      EXPECT_EQ(found->first.substr(0, found->first.find_first_of(".[")), key) << path;
    }
  };
  for (const std::string run : {"local/", "dist/", "central/"}) {
    check(recorded + run + "config.json", table_of("## config.json"));
    check(recorded + run + "summary.json", table_of("## summary.json"));
  }
  check(recorded + "transport/transport-ps.json", table_of("## transport-ROLE.json"));
  check(recorded + "local/profile.json", table_of("## profile.json"));
}

/// Exactly one of all programs that want a directory at the same moment gets it. More threads than
/// cores run through the same directories, so that they interrupt each other between all steps.
TEST(RunDirectory, BelongsToOneOfThoseThatWantItAtOnce) {
  const TemporaryFolder folder;
  constexpr std::size_t directories = 400;
  std::array<std::atomic<int>, directories> owners{};
  std::vector<std::vector<std::unique_ptr<RunDirectory>>> owned(8);
  std::vector<std::thread> threads;
  for (auto& mine : owned)
    threads.emplace_back([&] {
      for (std::size_t i = 0; i < directories; ++i) try {
          mine.push_back(std::make_unique<RunDirectory>(folder / std::to_string(i), "local",
                                                        "lenet",
                                                        std::vector<std::string>{"config.json"}));
          ++owners[i];
        } catch (const Error&) {
        }
    });
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < directories; ++i) EXPECT_EQ(owners[i], 1) << "directory " << i;
}

}  // namespace
}  // namespace duplex::tools
