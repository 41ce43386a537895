// A checkpoint is whole only when the rows of the steps before it are on the disk, so that nothing
// is missing where a training goes on after a power failure.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string>
#include <vector>

#include "core/error.h"
#include "tests/temporary_folder.h"
#include "tools/checkpoint/checkpoint_files.h"
#include "tools/run_directory/row_file.h"
#include "tools/run_directory/rows.h"
#include "tools/run_directory/troubles.h"

namespace duplex::tools::testing {
namespace {

bool watched = false;
std::vector<std::string> synced;  ///< Paths, while they are watched.
std::string unsound;              ///< The name of a file on a part of the disk that is broken.

}  // namespace
}  // namespace duplex::tools::testing

/// Takes the place of the C library's in the whole program.
extern "C" int fsync(int descriptor) {
  using namespace duplex::tools::testing;
  if (watched) {
    const std::filesystem::path path =
        std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(descriptor));
    if (!unsound.empty() && path.filename() == unsound) {
      errno = EIO;
      return -1;
    }
    synced.push_back(path.string());
  }
  return static_cast<int>(::syscall(SYS_fsync, descriptor));
}

namespace duplex::tools::testing {
namespace {

class DurableRows : public ::testing::Test {
 protected:
  DurableRows() {
    synced.clear();
    unsound.clear();
    watched = true;
  }
  ~DurableRows() override { watched = false; }

  /// Writes a checkpoint behind rows of a training. `tested`: it has been tested, too.
  void train_and_write(bool tested) {
    RowFile<StepMetrics>(folder_ / "metrics.csv", Rows::anew, troubles_).write({});
    if (tested) RowFile<AccuracyRow>(folder_ / "accuracy.csv", Rows::anew, troubles_).write({});
    CheckpointFiles(folder_.path(), 0, 1, "settings")
        .write(1, {{"weight", Shape{2}, [](float* to) { to[0] = to[1] = 1.0F; }, {}}});
  }
  /// Returns the number of the first call that synced what lies there; -1: none did.
  std::ptrdiff_t call_of(const std::string& path) const {
    const std::string real = std::filesystem::canonical(folder_.path()).string() + path;
    const auto found = std::find_if(synced.begin(), synced.end(), [&](const std::string& each) {
      return each == real || each.rfind(real + ".tmp-", 0) == 0;
    });
    return found == synced.end() ? -1 : found - synced.begin();
  }

  const std::string file_ = "/checkpoints/step-0000000001/rank-0.safetensors";
  TemporaryFolder folder_;
  Troubles troubles_;
};

TEST_F(DurableRows, AreOnTheDiskBeforeTheirCheckpoint) {
  train_and_write(true);
  for (const char* rows : {"/metrics.csv", "/accuracy.csv", ""}) {
    EXPECT_GE(call_of(rows), 0) << rows;
    EXPECT_LT(call_of(rows), call_of(file_)) << rows;
  }
  // Its folders are new, too.
  EXPECT_GT(call_of("/checkpoints/step-0000000001"), call_of(file_));
  EXPECT_GT(call_of("/checkpoints"), call_of(file_));
  EXPECT_EQ(synced.back(), std::filesystem::canonical(folder_.path()).string());
}

TEST_F(DurableRows, AreNotMissedWhereThereAreNone) {
  train_and_write(false);
  EXPECT_TRUE(std::filesystem::exists(folder_ / file_));
  // A device has no rows to keep.
  std::filesystem::create_symlink("/dev/null", folder_ / "accuracy.csv");
  EXPECT_NO_THROW(train_and_write(false));
}

TEST_F(DurableRows, AreSaidToBeLost) {
  unsound = "metrics.csv";
  try {
    train_and_write(true);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()),
              (folder_ / "metrics.csv") + " cannot be synced: Input/output error");
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / file_));
}

}  // namespace
}  // namespace duplex::tools::testing
