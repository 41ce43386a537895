#include "tests/fuzz/memory_limit.h"

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <new>

// GCC says by a macro, clang by a feature, that it compiles for AddressSanitizer.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define DUPLEX_ADDRESS_SANITIZER
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define DUPLEX_ADDRESS_SANITIZER
#endif

#ifdef DUPLEX_ADDRESS_SANITIZER
// From sanitizer/allocator_interface.h, which GCC does not install.
extern "C" {
int __sanitizer_install_malloc_and_free_hooks(void (*malloc_hook)(const volatile void*,
                                                                  std::size_t),
                                              void (*free_hook)(const volatile void*));
std::size_t __sanitizer_get_allocated_size(const volatile void* memory);
}
#endif

namespace duplex::fuzz {
namespace {

constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();

// The bytes that all threads hold, without those allocated before the counting began, and the most
// that they may hold.
std::atomic<std::int64_t> held{0}, most{unlimited};

/// Ends the program if so many more bytes are too many.
void check(std::size_t bytes) {
  const std::int64_t limit = most, left = limit - std::max<std::int64_t>(held, 0);
  if (limit == unlimited || (left >= 0 && bytes <= static_cast<std::size_t>(left))) return;
  most = unlimited;
  std::fprintf(stderr, "fuzz: an allocation of %zu bytes, but the input allows %lld more\n", bytes,
               static_cast<long long>(left));
  std::abort();
}

}  // namespace

MemoryLimit::MemoryLimit(std::size_t bytes) : before_(most) {
  most = std::max<std::int64_t>(held, 0) + static_cast<std::int64_t>(bytes);
}

MemoryLimit::~MemoryLimit() {
  most = before_;
}

#ifdef DUPLEX_ADDRESS_SANITIZER
namespace {

void allocated(const volatile void* /*memory*/, std::size_t bytes) {
  check(bytes);
  held += static_cast<std::int64_t>(bytes);
}

void given_back(const volatile void* memory) {
  if (memory != nullptr) held -= static_cast<std::int64_t>(__sanitizer_get_allocated_size(memory));
}

const int installed = __sanitizer_install_malloc_and_free_hooks(allocated, given_back);

}  // namespace
#endif

}  // namespace duplex::fuzz

#ifndef DUPLEX_ADDRESS_SANITIZER
// The array forms and those with a size call these two.
void* operator new(std::size_t bytes) {
  duplex::fuzz::check(bytes);
  void* memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  duplex::fuzz::held += static_cast<std::int64_t>(::malloc_usable_size(memory));
  return memory;
}

void operator delete(void* memory) noexcept {
  duplex::fuzz::held -= static_cast<std::int64_t>(::malloc_usable_size(memory));
  std::free(memory);
}

void operator delete(void* memory, std::size_t /*bytes*/) noexcept {
  operator delete(memory);
}
#endif
