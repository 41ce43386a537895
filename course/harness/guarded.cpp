#include "course/harness/guarded.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/error.h"

namespace duplex::course {
namespace {

// Four of them are NaN, so that what is read before the beginning spoils a sum.
constexpr std::byte before_values{0xFF};

std::string elements(std::ptrdiff_t bytes) {
  const std::ptrdiff_t count = (bytes + 3) / 4;
  return std::to_string(count) + (count == 1 ? " element" : " elements");
}

}  // namespace

Guarded::Guarded(std::string name, std::size_t count, float fill)
    : name_(std::move(name)),
      count_(count),
      page_(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))),
      inner_((count * sizeof(float) + page_ - 1) / page_ * page_) {
  void* mapped = ::mmap(nullptr, inner_ + 2 * page_, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED)
    throw Error("no memory for " + name_ + ": " + std::strerror(errno) + "; close other programs");
  mapping_ = static_cast<std::byte*>(mapped);
  std::byte* end = mapping_ + page_ + inner_;
  data_ = reinterpret_cast<float*>(end - count * sizeof(float));
  std::fill(mapping_ + page_, reinterpret_cast<std::byte*>(data_), before_values);
  std::fill(data_, data_ + count, fill);
  ::mprotect(mapping_, page_, PROT_NONE);
  ::mprotect(end, page_, PROT_NONE);
}

Guarded::Guarded(std::string name, const std::vector<float>& values)
    : Guarded(std::move(name), values.size(), 0.0F) {
  std::copy(values.begin(), values.end(), data_);
}

Guarded::Guarded(std::string name, const std::int32_t* values, std::size_t count)
    : Guarded(std::move(name), count, 0.0F) {
  std::memcpy(data_, values, count * sizeof(*values));
}

Guarded::~Guarded() {
  ::munmap(mapping_, inner_ + 2 * page_);
}

void Guarded::seal() {
  ::mprotect(mapping_ + page_, inner_, PROT_READ);
  sealed_ = true;
}

bool Guarded::intact() const {
  return std::all_of(mapping_ + page_, reinterpret_cast<std::byte*>(data_),
                     [](std::byte byte) { return byte == before_values; });
}

std::string Guarded::place(const void* address) const {
  const auto* at = static_cast<const std::byte*>(address);
  const auto* begin = reinterpret_cast<const std::byte*>(data_);
  const std::byte* end = mapping_ + page_ + inner_;
  if (at < mapping_ || at >= end + page_) return "";
  if (at >= end) return elements(at - end + 1) + " beyond the end of " + name_;
  if (at < begin) return elements(begin - at) + " before the beginning of " + name_;
  return sealed_ ? "in " + name_ + ", which is only to be read" : "";
}

}  // namespace duplex::course
