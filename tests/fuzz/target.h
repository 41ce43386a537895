// Fuzz targets: readers that are given bytes which nobody wrote for them. Each target is a function
// of tests/fuzz/targets, named like its file. `make fuzz` links one with libFuzzer (entry.cpp);
// `make test` links all with replay.cpp, which gives them the files of tests/fuzz/corpus, whole and
// damaged.
//
// A reader keeps three promises: it takes the bytes or throws Error, and nothing else; it takes no
// more memory than their number allows; it ends.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace duplex::fuzz {

/// The bytes of one input.
using Bytes = std::vector<std::uint8_t>;

struct Target {
  const char* name;
  void (*read)(const Bytes& input);
};

/// All targets that are linked into this program, by name (make/fuzz_targets.sh writes the list).
const std::vector<Target>& targets();

/// A reader may take this much, and `each` times the input beside it: buffers and tables of a fixed
/// size.
constexpr std::size_t free_memory = std::size_t{4} << 20;

/// Calls `body` and returns whether it went through; false: it threw Error. Any other exception
/// passes, and ends the program. So does an allocation with which `body` holds more than
/// free_memory and `each` bytes for every byte of input, at its place.
bool reads(const Bytes& input, std::size_t each, const std::function<void()>& body);

/// Ends the program where the condition is false.
void require(bool condition, const char* what);

/// Reads bytes that nothing else reads, so that a sanitizer sees them.
void touch(const std::uint8_t* data, std::size_t bytes);

/// Returns true for one input in sixteen: a target reads those of a kind that takes milliseconds.
/// All bytes decide, so that no change of one makes many such inputs.
bool is_sampled(const Bytes& input);

/// The bytes as text.
std::string text_of(const Bytes& bytes);

}  // namespace duplex::fuzz
