#include "tests/fuzz/target.h"

#include <cstdio>
#include <cstdlib>

#include "core/error.h"
#include "tests/fuzz/memory_limit.h"

namespace duplex::fuzz {

bool reads(const Bytes& input, std::size_t each, const std::function<void()>& body) {
  const MemoryLimit limit(free_memory + each * input.size());
  try {
    body();
    return true;
  } catch (const Error&) {
    return false;
  }
}

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "fuzz: %s\n", what);
  std::abort();
}

void touch(const std::uint8_t* data, std::size_t bytes) {
  // The compiler has to keep what it stores here.
  volatile std::uint8_t sink = 0;
  std::uint8_t sum = 0;
  for (std::size_t i = 0; i < bytes; ++i) sum = static_cast<std::uint8_t>(sum + data[i]);
  sink = sum;
  static_cast<void>(sink);
}

bool is_sampled(const Bytes& input) {
  std::uint64_t hash = 0xcbf29ce484222325U;  // FNV-1a.
  for (const std::uint8_t byte : input) hash = (hash ^ byte) * 0x100000001b3U;
  return (hash >> 32) % 16 == 0;
}

std::string text_of(const Bytes& bytes) {
  return {bytes.begin(), bytes.end()};
}

}  // namespace duplex::fuzz
