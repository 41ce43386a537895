// A file that is written is none that is read: names are compared by the files that they lead to.
#include "core/files/own_files.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "tests/temporary_folder.h"

namespace duplex {
namespace {

namespace fs = std::filesystem;

std::string refusal(const std::vector<NamedFile>& read, const std::vector<NamedFile>& written) {
  try {
    require_own_files("pack", read, written);
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::usage);
    return error.what();
  }
  return "";
}

TEST(OwnFiles, AreKnownByOtherSpellingsAndLinks) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "sub");
  std::ofstream(folder / "a") << "a";
  std::ofstream(folder / "b") << "a";
  fs::create_symlink("a", folder / "link");
  fs::create_hard_link(folder / "a", folder / "hard");
  for (const char* same : {"a", "./a", "sub/../a", "link", "hard"})
    EXPECT_TRUE(is_one_file(folder / "a", folder / same)) << same;
  for (const char* other : {"b", "nowhere", "sub", "a/a"})
    EXPECT_FALSE(is_one_file(folder / "a", folder / other)) << other;
}

TEST(OwnFiles, AreComparedByPathWhereTheyAreNotThereYet) {
  const TemporaryFolder folder;
  fs::create_directory_symlink(".", folder / "here");
  EXPECT_TRUE(is_one_file(folder / "new", folder / "here/./new"));
  EXPECT_FALSE(is_one_file(folder / "new", folder / "newer"));
}

TEST(OwnFiles, AreNoDevices) {
  EXPECT_FALSE(is_one_file("/dev/null", "/dev/null"));
}

TEST(OwnFiles, LieInAFolder) {
  const TemporaryFolder folder;
  fs::create_directories(folder / "data/cat");
  fs::create_directory_symlink("data", folder / "link");
  EXPECT_TRUE(lies_in(folder / "data/cat/new.png", folder / "data"));
  EXPECT_TRUE(lies_in(folder / "data/new", folder / "link/"));
  EXPECT_TRUE(lies_in(folder / "link/new", folder / "data"));
  for (const char* outside : {"new", "data2/new", "data/../new", "data"})
    EXPECT_FALSE(lies_in(folder / outside, folder / "data")) << outside;
}

TEST(OwnFiles, TheRefusalNamesBothFlags) {
  const TemporaryFolder folder;
  std::ofstream(folder / "a") << "a";
  const std::string a = folder / "a", b = folder / "b";
  EXPECT_EQ(refusal({{"--net", ""}, {"--weights", a}}, {{"--output", a}}),
            "pack: --output " + a +
                " is the file that --weights names, and would replace it; write to another one");
  EXPECT_EQ(refusal({}, {{"--output", b}, {"--svg", b}}),
            "pack: --output and --svg name one file, " + b + ", and need a file each");
  EXPECT_EQ(refusal({{"--weights", a}, {"--net", a}}, {{"--output", b}, {"--svg", ""}}), "");
}

}  // namespace
}  // namespace duplex
