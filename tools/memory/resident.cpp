#include "tools/memory/resident.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

namespace duplex::tools {
namespace {

/// Returns the number behind a key in a file of "key:   number kB" lines; 0: there is none.
std::size_t kilobytes_in(const char* path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (line.rfind(key, 0) == 0) return std::strtoull(line.c_str() + key.size(), nullptr, 10);
  return 0;
}

}  // namespace

std::size_t resident_now() {
  // The kernel sums this up page by page; the number in /proc/self/status lags behind.
  std::size_t kilobytes = kilobytes_in("/proc/self/smaps_rollup", "Rss:");
  if (kilobytes == 0) kilobytes = kilobytes_in("/proc/self/status", "VmRSS:");
  return kilobytes * 1024;
}

std::size_t in_pages(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

}  // namespace duplex::tools
