// Shares out the loops of this backend's own over OpenMP's threads.
#pragma once
#ifdef _OPENMP
#include <omp.h>
#endif

#include <algorithm>
#include <cstdint>

namespace duplex::onednn {

/// Elements below which a second thread costs more than it saves.
constexpr std::int64_t serial_elements = 16384;

/// Calls body(begin, end) for parts of [0, count) that together make it up. `work` is the number of
/// elements that all of it touches. It takes one thread or all of them, because OpenMP would end
/// and restart threads otherwise.
template <class Body>
void parallel_for(std::int64_t count, std::int64_t work, const Body& body) {
#ifdef _OPENMP
  if (work >= serial_elements && count > 1 && omp_get_max_threads() > 1) {
#pragma omp parallel
    {
      const std::int64_t parts = omp_get_num_threads(), part = omp_get_thread_num();
      const std::int64_t begin = count * part / parts, end = count * (part + 1) / parts;
      if (begin < end) body(begin, end);
    }
    return;
  }
#endif
  (void)work;
  if (count > 0) body(std::int64_t{0}, count);
}

/// Does the same over floats, cut at cache lines.
template <class Body>
void parallel_elements(std::int64_t count, const Body& body) {
  constexpr std::int64_t line = 16;
  parallel_for((count + line - 1) / line, count, [&](std::int64_t begin, std::int64_t end) {
    body(begin * line, std::min(end * line, count));
  });
}

}  // namespace duplex::onednn
