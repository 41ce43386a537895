// Runs the turns of a loop on several threads.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "core/device.h"

namespace duplex::datasets {

/// Returns `asked`, or if that is 0 the number of cores that this process may use.
inline int thread_count(int asked) {
  if (asked > 0) return asked;
  return usable_cores();
}

/// Calls body(i) once for each i below `count`, on `threads` threads, the caller's among them. An
/// exception ends the loop early and is thrown again here.
template <typename Body>
void parallel_for(std::size_t count, int threads, const Body& body) {
  std::atomic<std::size_t> next{0};
  std::exception_ptr failure;
  std::mutex mutex;  // Guards `failure`. Any of the threads takes it.
  const auto work = [&] {
    try {
      for (std::size_t i = next++; i < count; i = next++) body(i);
    } catch (...) {
      next = count;
      const std::lock_guard<std::mutex> lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  };
  const std::size_t helpers =
      std::min(static_cast<std::size_t>(std::max(threads, 1)), std::max<std::size_t>(count, 1)) - 1;
  std::vector<std::thread> pool;
  pool.reserve(helpers);
  try {
    for (std::size_t i = 0; i < helpers; ++i) pool.emplace_back(work);
  } catch (const std::system_error&) {  // Processes run short: the others do the work.
  }
  work();
  for (std::thread& thread : pool) thread.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace duplex::datasets
