#include "core/processor/cores.h"

#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <system_error>
#include <thread>
#include <tuple>

namespace duplex {
namespace {

/// The number in the first line of a file; 0 if there is none.
int number_in(const std::string& path) {
  std::ifstream file(path);
  int number = 0;
  return file >> number ? number : 0;
}

/// The number of the NUMA node that a core belongs to; 0 where the system does not tell.
int node_of(const std::string& core_folder) {
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(core_folder, none)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind("node", 0) != 0 || name.find_first_not_of("0123456789", 4) != std::string::npos)
      continue;
    return std::atoi(name.c_str() + 4);
  }
  return 0;
}

}  // namespace

std::vector<int> own_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof set, &set) != 0) {  // There are more than the set can say.
    cores.resize(std::min(std::thread::hardware_concurrency(), unsigned{CPU_SETSIZE}));
    std::iota(cores.begin(), cores.end(), 0);
  }
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) cores.push_back(cpu);
  return cores;
}

std::vector<int> in_order(const std::vector<int>& cores, const std::string& system) {
  std::vector<std::tuple<int, int, int, int>> places;  // Node, socket, core, hardware thread.
  for (const int cpu : cores) {
    const std::string folder = system + "/cpu/cpu" + std::to_string(cpu);
    const std::string core = folder + "/topology/core_id";
    places.emplace_back(node_of(folder), number_in(folder + "/topology/physical_package_id"),
                        std::filesystem::exists(core) ? number_in(core) : cpu, cpu);
  }
  std::sort(places.begin(), places.end());
  std::vector<int> ordered;
  for (const auto& place : places) ordered.push_back(std::get<3>(place));
  return ordered;
}

std::vector<std::vector<int>> core_shares(const std::vector<int>& cores, std::size_t parts) {
  std::vector<std::vector<int>> shares(parts);
  std::size_t next = 0;
  for (std::size_t part = 0; part < parts; ++part) {
    const std::size_t count = cores.size() / parts + (part < cores.size() % parts ? 1 : 0);
    for (std::size_t i = 0; i < count; ++i) shares[part].push_back(cores[next++]);
  }
  return shares;
}

void bind_thread(const std::vector<int>& cores) {
  if (cores.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores)
    if (core >= 0 && core < CPU_SETSIZE) CPU_SET(core, &set);
  sched_setaffinity(0, sizeof set, &set);
}

void run_bound(const std::vector<int>& cores, const std::function<void()>& work) {
  std::exception_ptr failure;
  std::thread thread([&] {
    bind_thread(cores);
    try {
      work();
    } catch (...) {
      failure = std::current_exception();
    }
  });
  thread.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace duplex
