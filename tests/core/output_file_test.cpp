// Tests that files appear whole or not at all.
#include "core/files/output_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "core/error.h"
#include "tests/temporary_folder.h"

namespace duplex {
namespace {

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string error_of(const std::string& path, std::size_t bytes) {
  try {
    write_file(path, std::string(bytes, 'x'));
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

/// The temporary file of a killed program, or a link that somebody has put there, is not written
/// to.
TEST(OutputFile, WritesToNoFileThatIsThere) {
  const TemporaryFolder folder;
  write_file(folder / "victim", "whole");
  const std::string temporary = folder / ("a.tmp-" + std::to_string(::getpid()));
  std::filesystem::create_symlink(folder / "victim", temporary);
  write_file(folder / "a", "content");
  EXPECT_EQ(content_of(folder / "victim"), "whole");
  EXPECT_EQ(content_of(folder / "a"), "content");
  EXPECT_FALSE(std::filesystem::is_symlink(folder / "a"));
}

TEST(OutputFile, AppearsWithCommitAndReplaces) {
  const TemporaryFolder folder;
  write_file(folder / "a", "before");
  {
    OutputFile file(folder / "a");
    file.write("after");
    EXPECT_EQ(content_of(folder / "a"), "before");
    file.commit();
    EXPECT_EQ(file.bytes(), 5U);
  }
  EXPECT_EQ(content_of(folder / "a"), "after");
  EXPECT_EQ(folder.files(), std::vector<std::string>{"a"});
}

TEST(OutputFile, VanishesWithoutCommit) {
  const TemporaryFolder folder;
  write_file(folder / "a", "before");
  {
    OutputFile file(folder / "a");
    file.write(std::string(1 << 20, 'x'));
    EXPECT_EQ(folder.files().size(), 2U);
  }
  EXPECT_EQ(content_of(folder / "a"), "before");
  EXPECT_EQ(folder.files(), std::vector<std::string>{"a"});
}

TEST(OutputFile, OverwritesWhatWasWritten) {
  const TemporaryFolder folder;
  const std::string large(200000, 'b');  // This is more than the buffer holds.
  OutputFile file(folder / "a");
  file.write("aaaa");
  file.write(large);
  file.write_at(1, "XY", 2);
  file.write("cc");
  file.commit();
  EXPECT_EQ(content_of(folder / "a"), "aXYa" + large + "cc");
  EXPECT_EQ(file.bytes(), 4 + large.size() + 2);
}

TEST(OutputFile, NamesFileAndReason) {
  const TemporaryFolder folder;
  EXPECT_EQ(error_of(folder / "no/a", 1),
            folder / "no/a" + " cannot be created: No such file or directory");
  EXPECT_EQ(error_of(folder.path(), 1), folder.path() + " cannot be created: Is a directory");
}

TEST(OutputFile, WritesToADeviceAndLeavesItOne) {
  for (const std::size_t bytes : {1U, 1U << 20}) {
    EXPECT_EQ(error_of("/dev/full", bytes), "/dev/full cannot be written: No space left on device");
    EXPECT_EQ(error_of("/dev/null", bytes), "");
  }
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

}  // namespace
}  // namespace duplex
