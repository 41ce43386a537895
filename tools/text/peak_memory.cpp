#include "tools/text/peak_memory.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

namespace duplex::tools {

std::int64_t peak_memory_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmHWM:", 0) == 0) return std::atoll(line.c_str() + 6) * 1024;  // "123 kB"
  }
  return 0;
}

std::uint64_t memory_bytes_now() {
  std::uint64_t all = 0, resident = 0;  // Pages.
  if (!(std::ifstream("/proc/self/statm") >> all >> resident)) return 0;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace duplex::tools
