#include "core/mapped_memory.h"

#include <sys/mman.h>

#include <memory>
#include <string>

#include "core/error.h"

namespace duplex {
namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20;

}  // namespace

Buffer map_memory(std::size_t bytes) {
  if (bytes == 0) return {};
  const bool big = bytes >= 2 * huge_page;
  const std::size_t size = bytes + (big ? huge_page : 0);
  void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    throw Error("out of memory: " + std::to_string(bytes >> 20) +
                " MiB wanted; a smaller --batch needs less, where there is one");
  void* data = memory;
  if (big) {
    std::size_t room = size;
    std::align(huge_page, bytes, data, room);
    ::madvise(data, bytes, MADV_HUGEPAGE);  // Without this advice, it is only slower.
  }
  return {data, bytes, [memory, size](void*) { ::munmap(memory, size); }};
}

}  // namespace duplex
