#include "tools/check/machine/host_facts.h"

#include <sys/statvfs.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <system_error>

#include "core/clock.h"
#include "core/processor/cores.h"
#include "tools/check/machine/system_files.h"
#include "tools/text/host_name.h"

namespace duplex::tools {
namespace {

/// Bytes of a line of /proc/meminfo, which counts in KiB.
std::uint64_t bytes_of(const std::string& root, const std::string& name) {
  return std::strtoull(value_in(root + "/proc/meminfo", name).c_str(), nullptr, 10) * 1024;
}

/// The folders of this process's control groups that limit `what` ("cpu", "memory"), from its own
/// up to the root, in the hierarchy of version 2 or in that of version 1.
std::vector<std::string> groups_of(const std::string& root, const std::string& what) {
  std::ifstream file(root + "/proc/self/cgroup");
  std::vector<std::string> folders;
  for (std::string line; std::getline(file, line);) {  // "NUMBER:CONTROLLERS:PATH"
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    std::string top = root + "/sys/fs/cgroup";
    if (controllers != ",,") {
      if (controllers.find("," + what + ",") == std::string::npos) continue;
      top += "/" + what;
    }
    std::string path = line.substr(second + 1);
    if (path == "/") path.clear();
    for (;; path.erase(path.rfind('/'))) {
      folders.push_back(top + path);
      if (path.empty() || path.front() != '/') break;
    }
  }
  return folders;
}

/// The cores' worth of time that the tightest control group allows; none: no limit.
std::optional<double> quota_of(const std::string& root) {
  std::optional<double> least;
  const auto take = [&](double quota, double period) {
    if (quota > 0.0 && period > 0.0) least = std::min(least.value_or(1e9), quota / period);
  };
  for (const std::string& group : groups_of(root, "cpu")) {
    std::istringstream both(text_in(group + "/cpu.max"));  // "max 100000" or "200000 100000".
    double quota = 0.0, period = 0.0;
    if (both >> quota >> period) take(quota, period);
    take(static_cast<double>(number_in(group + "/cpu.cfs_quota_us").value_or(0)),
         static_cast<double>(number_in(group + "/cpu.cfs_period_us").value_or(0)));
  }
  return least;
}

/// Bytes that the control groups still allow; none: as many as the machine has.
std::optional<std::uint64_t> memory_left(const std::string& root) {
  std::optional<std::uint64_t> least;
  const auto take = [&](const std::string& group, const char* limit, const char* usage) {
    const auto most = number_in(group + limit), used = number_in(group + usage);
    if (!most || !used) return;
    // Files that the kernel keeps in memory count as used, and are given back when it is wanted.
    std::istringstream statistics(text_in(group + "/memory.stat"));
    std::int64_t files = 0, number = 0;
    for (std::string name; statistics >> name >> number;)
      if (name == "inactive_file" || name == "total_inactive_file") files = number;
    const auto left = static_cast<std::uint64_t>(
        std::max<std::int64_t>(*most - std::max<std::int64_t>(*used - files, 0), 0));
    least = std::min(least.value_or(UINT64_MAX), left);
  };
  for (const std::string& group : groups_of(root, "memory")) {
    take(group, "/memory.max", "/memory.current");
    take(group, "/memory.limit_in_bytes", "/memory.usage_in_bytes");
  }
  return least;
}

/// PRETTY_NAME of /etc/os-release, without its quotes.
std::string system_name(const std::string& root) {
  std::ifstream file(root + "/etc/os-release");
  const std::string key = "PRETTY_NAME=";
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(key, 0) != 0) continue;
    std::string name = line.substr(key.size());
    name.erase(std::remove(name.begin(), name.end(), '"'), name.end());
    return name;
  }
  return "";
}

void add_clock(MachineFacts& facts) {
  const auto wall = [] {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  };
  // This process may be interrupted between the two clocks: the shortest of some tries counts.
  std::int64_t shortest = INT64_MAX;
  for (int i = 0; i < 10; ++i) {
    const std::int64_t before = clock_ns(), now = wall(), after = clock_ns();
    if (after - before >= shortest) continue;
    shortest = after - before;
    facts.clock_ahead_ns = now - (before + shortest / 2);
  }
  timex state{};
  facts.synchronised = ::adjtimex(&state) >= 0 && (state.status & STA_UNSYNC) == 0;
}

}  // namespace

void add_host_facts(MachineFacts& facts, const std::string& root) {
  facts.name = host_name();
  utsname system{};
  if (::uname(&system) == 0) {
    facts.kernel = system.release;
    facts.architecture = system.machine;
  }
  facts.system = system_name(root);
  facts.processor = value_in(root + "/proc/cpuinfo", "model name");
  facts.cores = ::sysconf(_SC_NPROCESSORS_ONLN);
  facts.usable = static_cast<std::int64_t>(own_cores().size());
  facts.quota = quota_of(root);
  facts.memory = bytes_of(root, "MemTotal");
  facts.available = available_memory(root);
  const std::uint64_t swap = bytes_of(root, "SwapTotal"), free_swap = bytes_of(root, "SwapFree");
  facts.swapped = swap - std::min(free_swap, swap);
  add_clock(facts);
}

std::uint64_t available_memory(const std::string& root) {
  return std::min(bytes_of(root, "MemAvailable"), memory_left(root).value_or(UINT64_MAX));
}

std::vector<DiskFacts> disk_facts(const std::vector<std::string>& folders) {
  std::vector<DiskFacts> disks;
  for (const std::string& folder : folders) {
    const auto same = [&](const DiskFacts& disk) { return disk.path == folder; };
    if (std::any_of(disks.begin(), disks.end(), same)) continue;
    DiskFacts& disk = disks.emplace_back();
    disk.path = folder;
    struct statvfs system {};
    if (::statvfs(folder.c_str(), &system) != 0 || ::access(folder.c_str(), W_OK | X_OK) != 0) {
      disk.trouble = std::generic_category().message(errno);
      continue;
    }
    disk.free_bytes = static_cast<std::uint64_t>(system.f_bavail) * system.f_frsize;
    if (system.f_files > 0 && system.f_favail == 0) disk.trouble = "there are no more inodes";
  }
  return disks;
}

}  // namespace duplex::tools
