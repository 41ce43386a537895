#include "core/files/write_all.h"

#include <unistd.h>

#include <cerrno>

namespace duplex {

std::size_t write_all(int descriptor, const char* from, std::size_t size) {
  std::size_t written = 0;
  while (written < size) {
    const ssize_t wrote = ::write(descriptor, from + written, size - written);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) break;
    written += static_cast<std::size_t>(wrote);
  }
  return written;
}

}  // namespace duplex
