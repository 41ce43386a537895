// Tests that choices of engines are found again, and that what is damaged or forbidden is not.
#include "core/cudnn/engines/choices.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "core/cudnn/cache.h"
#include "tests/temporary_folder.h"

namespace duplex::cudnn {
namespace {

std::string only_file(const std::string& folder) {
  std::string path;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    EXPECT_TRUE(path.empty()) << "several files";
    path = entry.path().string();
  }
  return path;
}

TEST(Choices, AreFoundAgain) {
  const TemporaryFolder folder;
  const std::string name = "NVIDIA H200, cuDNN 9.19, bf16";
  {
    Choices first(folder.path(), name);
    EXPECT_FALSE(first.find("a 1 "));
    first.keep("a 1 ", {0, 3, 57, 0.25F});
    first.keep("b 2 ", {1, 0, -1, 1.5F});
    first.keep("a 1 ", {1, 2, 58, 0.125F});
  }
  const Choices again(folder.path(), name);
  ASSERT_TRUE(again.find("a 1 ") && again.find("b 2 "));
  EXPECT_EQ(again.find("a 1 ")->mode, 1);
  EXPECT_EQ(again.find("a 1 ")->position, 2);
  EXPECT_EQ(again.find("a 1 ")->engine, 58);
  EXPECT_EQ(again.find("a 1 ")->milliseconds, 0.125F);
  EXPECT_EQ(again.find("b 2 ")->engine, -1);
  EXPECT_FALSE(Choices(folder.path(), "NVIDIA H200, cuDNN 9.19, tf32").find("a 1 "));
}

TEST(Choices, DamagedLinesAreNotThere) {
  const TemporaryFolder folder;
  Choices(folder.path(), "gpu").keep("good ", {0, 1, 2, 3.0F});
  std::ofstream file(only_file(folder.path()), std::ios::app);
  file << "no tab\nword \tx y z\nmode \t2 0 1 1\nback \t0 -1 1 1\nfar \t0 99999999 1 1\n"
       << "nan \t0 0 1 nan\ncut \t0 0 1 1";
  file.close();
  const Choices read(folder.path(), "gpu");
  EXPECT_TRUE(read.find("good "));
  for (const char* key : {"no tab", "word ", "mode ", "back ", "far ", "nan ", "cut "})
    EXPECT_FALSE(read.find(key)) << key;
}

TEST(Choices, AreKeptInMemoryWhereThereIsNoFolder) {
  Choices nowhere("", "gpu");
  nowhere.keep("a ", {0, 1, 2, 3.0F});
  EXPECT_TRUE(nowhere.find("a "));
  const TemporaryFolder folder;
  std::ofstream(folder / "file") << "";
  Choices refused(folder / "file/below", "gpu");
  refused.keep("a ", {0, 1, 2, 3.0F});
  EXPECT_TRUE(refused.find("a "));
}

TEST(Choices, TheUserSaysWhere) {
  const auto folder = [](const char* own, const char* cache) {
    ::setenv("DUPLEX_CACHE", own, 1);
    ::setenv("XDG_CACHE_HOME", cache, 1);
    ::setenv("HOME", "/home/user", 1);
    return cache_folder();
  };
  EXPECT_EQ(folder("/a/b", "/c"), "/a/b");
  EXPECT_EQ(folder("off", "/c"), "");
  EXPECT_EQ(folder("", "/c"), "/c/duplex");
  EXPECT_EQ(folder("", "relative"), "/home/user/.cache/duplex");
  EXPECT_EQ(folder("", ""), "/home/user/.cache/duplex");
  ::unsetenv("DUPLEX_CACHE");
}

}  // namespace
}  // namespace duplex::cudnn
