#include "datasets/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "core/files/read_at.h"

namespace duplex::datasets {
namespace {

struct OpenFile {
  Descriptor descriptor;
  std::size_t bytes;
};

OpenFile open_regular(const std::string& path) {
  // With O_NONBLOCK, opening a pipe that nobody writes to does not wait; regular files ignore it.
  Descriptor descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (descriptor.number() < 0) throw Error(error_text(errno));
  struct stat status {};
  if (::fstat(descriptor.number(), &status) != 0) throw Error(error_text(errno));
  if (S_ISDIR(status.st_mode)) throw Error("it is a folder");
  if (!S_ISREG(status.st_mode)) throw Error("it is not a regular file");
  return {std::move(descriptor), static_cast<std::size_t>(status.st_size)};
}

}  // namespace

std::string error_text(int number) {
  return std::generic_category().message(number);
}

Descriptor::~Descriptor() {
  if (number_ >= 0) ::close(number_);
}

int Descriptor::release() {
  return std::exchange(number_, -1);
}

std::vector<std::uint8_t> read_file(const std::string& path, std::size_t max_bytes) {
  const OpenFile file = open_regular(path);
  if (file.bytes > max_bytes) {
    throw Error("it has " + std::to_string(file.bytes) + " bytes, more than the limit of " +
                std::to_string(max_bytes));
  }
  std::vector<std::uint8_t> content(file.bytes);
  std::size_t have = 0;
  while (have < content.size()) {
    const ssize_t got =
        ::read(file.descriptor.number(), content.data() + have, content.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw Error(error_text(errno));
    if (got == 0) throw Error("it became shorter while it was read");
    have += static_cast<std::size_t>(got);
  }
  return content;
}

ReadFile::ReadFile(const std::string& path) {
  OpenFile file = open_regular(path);
  bytes_ = file.bytes;
  descriptor_ = std::move(file.descriptor);
}

void ReadFile::read(std::uint64_t offset, void* to, std::size_t size) const {
  read_at(descriptor_.number(), offset, to, size);
}

}  // namespace duplex::datasets
