// Tests that the program knows its own file. tests/bundle.sh tests it where the loader was started
// by name.
#include "core/program_path.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>

namespace duplex {
namespace {

/// Returns the file that the kernel has mapped at an address.
std::string mapped_at(const void* address) {
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::istringstream fields(line);
    std::uintptr_t begin = 0, end = 0;
    char dash = 0;
    fields >> std::hex >> begin >> dash >> end;
    if (wanted >= begin && wanted < end) return line.substr(line.find('/'));
  }
  return "";
}

const int here = 0;

TEST(ProgramPath, IsTheFileThatThisCodeIsFrom) {
  EXPECT_FALSE(run_by_loader());
  EXPECT_EQ(program_file(), mapped_at(&here));
  EXPECT_EQ(program_path(), program_file());
}

}  // namespace
}  // namespace duplex
