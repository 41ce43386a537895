#include "datasets/packed.h"

#include <array>

#include "core/error.h"
#include "core/files/crc32c.h"
#include "datasets/packed_format.h"

namespace duplex::datasets {
namespace {

/// Reads numbers and texts of the header or the table, never past its end.
class Reader {
 public:
  Reader(const std::uint8_t* at, std::size_t bytes) : at_(at), left_(bytes) {}

  template <typename Number>
  Number number() {
    need(sizeof(Number));
    Number value = 0;
    for (std::size_t i = 0; i < sizeof(Number); ++i) {
      value = static_cast<Number>(value | static_cast<Number>(at_[i]) << (8 * i));
    }
    advance(sizeof(Number));
    return value;
  }
  std::string text() {
    const auto length = number<std::uint32_t>();
    need(length);
    std::string value(reinterpret_cast<const char*>(at_), length);
    advance(length);
    return value;
  }
  std::size_t left() const { return left_; }

 private:
  void need(std::size_t bytes) const {
    if (bytes > left_) throw Error("its table is damaged");
  }
  void advance(std::size_t bytes) {
    at_ += bytes;
    left_ -= bytes;
  }

  const std::uint8_t* at_;
  std::size_t left_;
};

/// Reads the header and checks that its numbers are within bounds and fit the file's length.
PackHeader read_header(const ReadFile& file) {
  if (file.bytes() < PackHeader::bytes) throw Error("it is truncated");
  std::array<std::uint8_t, PackHeader::bytes> content;
  file.read(0, content.data(), content.size());
  Reader reader(content.data(), content.size());
  PackHeader header;
  if (reader.number<std::uint64_t>() != PackHeader::magic) throw Error("it is no packed file");
  const auto version = reader.number<std::uint32_t>();
  if (version != PackHeader::version) {
    throw Error("it has version " + std::to_string(version) +
                " of the format, this program reads " + std::to_string(PackHeader::version) +
                "; pack the data set again");
  }
  header.channels = reader.number<std::uint32_t>();
  header.height = reader.number<std::uint32_t>();
  header.width = reader.number<std::uint32_t>();
  header.classes = reader.number<std::uint32_t>();
  header.samples = reader.number<std::uint32_t>();
  header.file_bytes = reader.number<std::uint64_t>();
  header.digest = reader.number<std::uint64_t>();
  header.table_checksum = reader.number<std::uint32_t>();
  constexpr std::uint32_t longest = 1u << 14;
  if ((header.channels != 1 && header.channels != 3) || header.height == 0 || header.width == 0 ||
      header.height > longest || header.width > longest || header.classes == 0 ||
      header.samples == 0) {
    throw Error("its header is damaged");
  }
  if (header.file_bytes != file.bytes()) {
    throw Error("it has " + std::to_string(file.bytes()) + " bytes, but its header announces " +
                std::to_string(header.file_bytes));
  }
  if (header.table_begin() > header.file_bytes) throw Error("its header is damaged");
  return header;
}

struct PackTable {
  Catalogue catalogue;
  std::vector<std::uint32_t> checksums;  ///< Those of the pixels, by sample.
};

PackTable read_table(const ReadFile& file, const PackHeader& header) {
  std::vector<std::uint8_t> content(file.bytes() - header.table_begin());
  file.read(header.table_begin(), content.data(), content.size());
  if (crc32c(0, content.data(), content.size()) != header.table_checksum)
    throw Error("its header or table is damaged");
  Reader reader(content.data(), content.size());
  PackTable table;
  Catalogue& catalogue = table.catalogue;
  catalogue.shape = {1, header.channels, header.height, header.width};
  for (std::uint32_t i = 0; i < header.classes; ++i) catalogue.classes.push_back(reader.text());
  for (std::uint32_t i = 0; i < header.samples; ++i) {
    Sample sample;
    const auto label = reader.number<std::uint32_t>();
    const auto use = reader.number<std::uint8_t>();
    if (label >= header.classes || use > static_cast<std::uint8_t>(Use::test)) {
      throw Error("its table is damaged");
    }
    sample.label = static_cast<std::int32_t>(label);
    sample.use = static_cast<Use>(use);
    sample.source_bytes = reader.number<std::uint64_t>();
    sample.checksum = reader.number<std::uint32_t>();
    table.checksums.push_back(reader.number<std::uint32_t>());
    sample.name = reader.text();
    catalogue.samples.push_back(std::move(sample));
  }
  if (reader.left() > 0) throw Error("its table is damaged");
  return table;
}

}  // namespace

bool PackedDataset::is_there(const std::string& path) {
  try {
    const ReadFile file(path);
    std::array<std::uint8_t, sizeof(PackHeader::magic)> first;
    if (file.bytes() < first.size()) return false;
    file.read(0, first.data(), first.size());
    return Reader(first.data(), first.size()).number<std::uint64_t>() == PackHeader::magic;
  } catch (const Error& error) {
    throw Error("data set '" + path + "' cannot be read: " + error.what());
  }
}

std::shared_ptr<const Dataset> PackedDataset::open(const std::string& path) {
  try {
    auto file = std::make_unique<ReadFile>(path);
    const PackHeader header = read_header(*file);
    PackTable table = read_table(*file, header);
    std::shared_ptr<const Dataset> data(new PackedDataset(
        std::move(table.catalogue), std::move(table.checksums), path, std::move(file)));
    if (data->digest() != header.digest) throw Error("its header or table is damaged");
    return data;
  } catch (const Error& error) {
    throw Error("packed file '" + path + "' cannot be read: " + error.what());
  }
}

const std::uint8_t* PackedDataset::read(std::size_t index, std::uint8_t* scratch) const {
  file_->read(PackHeader::pixels_begin + index * sample_bytes(), scratch, sample_bytes());
  if (crc32c(0, scratch, sample_bytes()) != checksums_[index])
    throw Error("its pixels in the packed file are damaged; pack the data set again");
  return scratch;
}

}  // namespace duplex::datasets
