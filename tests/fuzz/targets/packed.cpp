// Packed files. An input leaves out the zeros between header and pixels. It is read as it is, and
// with the length and the checksum of the table set right, which nothing else would pass.
#include "datasets/packed.h"

#include <algorithm>

#include "core/files/crc32c.h"
#include "datasets/packed_format.h"
#include "tests/fuzz/memory_file.h"

namespace duplex::fuzz {
namespace {

using datasets::PackHeader;

/// Where the header's last three numbers are.
constexpr std::size_t samples_at = 28, length_at = 32, checksum_at = 48;

std::uint64_t number_at(const Bytes& file, std::size_t at) {
  std::uint64_t value = 0;
  for (std::size_t i = 4; i-- > 0;) value = value << 8 | file[at + i];
  return value;
}

void set(Bytes& file, std::size_t at, std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i)
    file[at + i] = static_cast<std::uint8_t>(value >> (8 * i));
}

void mend(Bytes& file) {
  set(file, length_at, file.size(), 8);
  PackHeader header;
  header.channels = static_cast<std::uint32_t>(number_at(file, 12));
  header.height = static_cast<std::uint32_t>(number_at(file, 16));
  header.width = static_cast<std::uint32_t>(number_at(file, 20));
  header.samples = static_cast<std::uint32_t>(number_at(file, samples_at));
  const std::uint64_t begin = header.table_begin();
  if (begin <= file.size())
    set(file, checksum_at, crc32c(0, file.data() + begin, file.size() - begin), 4);
}

void open(const Bytes& file) {
  static MemoryFile memory;
  memory.write(file);
  reads(file, 200, [&] {
    if (!datasets::PackedDataset::is_there(memory.path())) return;
    const auto data = datasets::PackedDataset::open(memory.path());
    Bytes scratch(data->sample_bytes());
    for (std::size_t i = 0; i < data->size(); ++i)
      reads(file, 200, [&] { data->read(i, scratch.data()); });
  });
}

}  // namespace

void packed(const Bytes& input) {
  const auto header = static_cast<std::ptrdiff_t>(std::min(input.size(), PackHeader::bytes));
  Bytes file(input.begin(), input.begin() + header);
  if (input.size() > PackHeader::bytes) {
    file.resize(PackHeader::pixels_begin);
    file.insert(file.end(), input.begin() + header, input.end());
  }
  open(file);
  if (file.size() <= PackHeader::pixels_begin) return;
  mend(file);
  open(file);
}

}  // namespace duplex::fuzz
