#include "core/files/read_at.h"

#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "core/error.h"

namespace duplex {

void read_at(int descriptor, std::uint64_t offset, void* to, std::size_t size) {
  char* at = static_cast<char*>(to);
  while (size > 0) {
    const ssize_t got = ::pread(descriptor, at, size, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw Error("it cannot be read: " + std::generic_category().message(errno));
    if (got == 0) throw Error("it became shorter while it was in use");
    at += got;
    offset += static_cast<std::uint64_t>(got);
    size -= static_cast<std::size_t>(got);
  }
}

}  // namespace duplex
