#include "tools/text/peak_memory.h"

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

}  // namespace duplex::tools
