// Folders of IDX files. An input holds up to four files, of which each begins with its length, 16
// bits, lowest first: the labels and the images to train on, then those to test on. The last one
// may be shorter than its length.
#include "datasets/idx.h"

#include <algorithm>

#include "tests/fuzz/memory_file.h"

namespace duplex::fuzz {
namespace {

constexpr const char* names[] = {"train-labels-idx1-ubyte", "train-images-idx3-ubyte",
                                 "t10k-labels-idx1-ubyte", "t10k-images-idx3-ubyte"};

std::vector<Bytes> parts_of(const Bytes& input) {
  std::vector<Bytes> parts;
  for (std::size_t at = 0; at + 2 <= input.size() && parts.size() < 4;) {
    const std::size_t length = input[at] | std::size_t{input[at + 1]} << 8;
    const std::size_t end = std::min(at + 2 + length, input.size());
    parts.emplace_back(input.begin() + static_cast<std::ptrdiff_t>(at + 2),
                       input.begin() + static_cast<std::ptrdiff_t>(end));
    at = end;
  }
  return parts;
}

}  // namespace

void idx(const Bytes& input) {
  static MemoryFolder with_tests, without_tests;
  if (!with_tests.has(names[0])) {
    for (const char* name : names) with_tests.add(name);
    for (const char* name : {names[0], names[1]}) without_tests.add(name);
  }
  const std::vector<Bytes> parts = parts_of(input);
  MemoryFolder& folder = parts.size() > 2 ? with_tests : without_tests;
  for (std::size_t i = 0; i < 4; ++i)
    if (folder.has(names[i])) folder[names[i]].write(i < parts.size() ? parts[i] : Bytes());
  // Images of one pixel have a name and a checksum of some hundred bytes, and 1032 of them fit into
  // a byte of gzip.
  reads(input, std::size_t{1032} * 400, [&] {
    const auto data = datasets::IdxDataset::open(folder.path());
    Bytes scratch(data->sample_bytes());
    for (std::size_t i = 0; i < data->size(); ++i) {
      touch(data->read(i, scratch.data()), scratch.size());
      require(data->sample(i).label < static_cast<int>(data->classes().size()),
              "a label has no class");
    }
  });
}

}  // namespace duplex::fuzz
