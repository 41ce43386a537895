// The files of checkpoints that a rank removes, and those that it refuses.
#include "tools/checkpoint/checkpoint_files.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/files/output_file.h"
#include "core/files/state_file.h"
#include "tests/temporary_folder.h"

namespace duplex::tools::testing {
namespace {

std::vector<StateArray> state() {
  return {{"weight", Shape{2}, [](float* to) { to[0] = to[1] = 1.0F; }, {}}};
}

/// A program that is killed while it writes a checkpoint leaves a part of a file.
TEST(CheckpointFiles, GoWithWhatIsLeftOfThem) {
  const TemporaryFolder folder;
  const CheckpointFiles files(folder.path(), 1, 4, "settings", {0});
  for (const std::uint64_t steps : {1, 2, 3}) files.write(steps, state());
  const std::string first = "checkpoints/step-0000000001/", second = "checkpoints/step-0000000002/";
  for (const char* own : {"rank-1.safetensors.tmp-17", "rank-0-copy.safetensors.tmp-18"})
    for (const std::string& step : {first, second}) write_file(folder / (step + own), "part");
  // Other ranks, which may share the folder, may be writing these.
  write_file(folder / (second + "rank-2.safetensors.tmp-17"), "part");
  files.keep_newest();
  EXPECT_FALSE(std::filesystem::exists(folder / first));
  EXPECT_TRUE(std::filesystem::exists(folder / (second + "rank-1.safetensors.tmp-17")));
  files.remove_after(1);
  EXPECT_EQ(folder.files(), std::vector<std::string>{second + "rank-2.safetensors.tmp-17"});
}

TEST(CheckpointFiles, ComeFromOtherRanksOfTheSameTraining) {
  const TemporaryFolder folder;
  const CheckpointFiles files(folder.path(), 0, 2, "settings");
  CheckpointFiles(folder.path(), 1, 2, "settings").write(1, state());
  EXPECT_EQ(files.received(1, 1).rank, 1);
  CheckpointFiles(folder.path(), 1, 2, "others").write(2, state());
  std::filesystem::create_directories(std::filesystem::path(files.path(3, 1, false)).parent_path());
  save_state(files.path(3, 1, false), state(), {{"checkpoint_version", "2"}, {"steps", "3"}});
  for (const std::uint64_t steps : {2, 3}) {
    try {
      files.received(steps, 1);
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.what(), files.path(steps, 1, false) +
                                  " has come from another rank and is of another training");
    }
  }
}

}  // namespace
}  // namespace duplex::tools::testing
