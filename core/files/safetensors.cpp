#include "core/files/safetensors.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "core/files/crc32c.h"
#include "core/files/output_file.h"
#include "core/files/read_at.h"

namespace duplex {
namespace {

constexpr std::uint64_t length_bytes = 8;
constexpr std::uint64_t max_header_bytes =
    100'000'000;  // The limit of the library that defines the format.
constexpr std::uint64_t max_elements = std::uint64_t{1} << 40;

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "arrays are written as they lie in memory");

const std::string checksum_key = "crc32c";

/// The checksum as eight hexadecimal digits.
std::string checksum_text(std::uint32_t crc) {
  char text[9];
  std::snprintf(text, sizeof text, "%08x", crc);
  return text;
}

std::string header_of(const std::vector<SafetensorsEntry>& entries,
                      const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::uint64_t offset = 0;
  for (const SafetensorsEntry& entry : entries) {
    nlohmann::ordered_json shape = nlohmann::ordered_json::array();
    for (int axis = 0; axis < entry.shape.rank(); ++axis) shape.push_back(entry.shape[axis]);
    const std::uint64_t end =
        offset + static_cast<std::uint64_t>(entry.shape.elements()) * sizeof(float);
    header[entry.name] = {{"dtype", "F32"}, {"shape", shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  // Metadata may quote a path, which need not be UTF-8.
  std::string text = header.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

/// Returns a JSON number that is whole, not below 0 and fits an int64. Throws for any other value.
std::uint64_t whole_number(const nlohmann::json& value) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > INT64_MAX)
    throw Error("one of its sizes or offsets is no whole number from 0");
  return value.get<std::uint64_t>();
}

Shape shape_of(const nlohmann::json& extents) {
  if (!extents.is_array()) throw Error("its shape is not a list");
  const auto extent = [&](std::size_t axis) {
    return static_cast<std::int64_t>(whole_number(extents[axis]));
  };
  switch (extents.size()) {
    case 0:
      return {};
    case 1:
      return {extent(0)};
    case 2:
      return {extent(0), extent(1)};
    case 3:
      return {extent(0), extent(1), extent(2)};
    case 4:
      return {extent(0), extent(1), extent(2), extent(3)};
    default:
      throw Error("it has " + std::to_string(extents.size()) + " extents, more than four");
  }
}

/// Returns the product of the extents. Throws where it is absurd (and could overflow).
std::uint64_t elements_of(const Shape& shape) {
  std::uint64_t product = 1;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const auto extent = static_cast<std::uint64_t>(shape[axis]);
    if (extent != 0 && product > max_elements / extent)
      throw Error("its shape " + shape.str() + " is too large");
    product *= extent;
  }
  return product;
}

}  // namespace

void save_safetensors(const std::string& path, const std::vector<SafetensorsEntry>& entries,
                      const std::map<std::string, std::string>& metadata,
                      const std::function<void(std::size_t index, float* values)>& fill) {
  OutputFile file(path);
  // The checksum is known at the end, and takes the place of eight zeros.
  std::map<std::string, std::string> all = metadata;
  if (file.regular()) all[checksum_key] = checksum_text(0);
  const std::string header = header_of(entries, all);
  const std::size_t checksum_at =
      length_bytes + header.find("\"" + checksum_key + "\":\"") + checksum_key.size() + 4;
  const std::uint64_t length = header.size();
  file.write(&length, length_bytes);
  file.write(header);
  std::vector<float> values;
  std::uint32_t crc = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    values.resize(static_cast<std::size_t>(entries[i].shape.elements()));
    fill(i, values.data());
    file.write(values.data(), values.size() * sizeof(float));
    crc = crc32c(crc, values.data(), values.size() * sizeof(float));
  }
  const std::string checksum = checksum_text(crc);
  if (file.regular()) file.write_at(checksum_at, checksum.data(), checksum.size());
  file.commit();
}

SafetensorsFile::SafetensorsFile(const std::string& path)
    : path_(path), descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (descriptor_ < 0) fail("cannot be read: " + std::generic_category().message(errno));
  try {
    struct stat status {};
    if (::fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode))
      fail("is not a regular file");
    file_bytes_ = static_cast<std::uint64_t>(status.st_size);
    std::uint64_t header_bytes = 0;
    if (file_bytes_ < length_bytes) fail("is no safetensors file: it is too short");
    read_bytes(&header_bytes, length_bytes, 0);
    if (header_bytes > max_header_bytes || header_bytes > file_bytes_ - length_bytes) {
      fail("is no safetensors file, or was cut short: its header would have " +
           std::to_string(header_bytes) + " bytes");
    }
    std::string header(header_bytes, '\0');
    read_bytes(header.data(), header_bytes, length_bytes);
    data_begin_ = length_bytes + header_bytes;
    parse(header);
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

SafetensorsFile::~SafetensorsFile() {
  ::close(descriptor_);
}

void SafetensorsFile::fail(const std::string& what) const {
  throw Error(path_ + " " + what);
}

void SafetensorsFile::read_bytes(void* to, std::uint64_t bytes, std::uint64_t offset) const {
  try {
    read_at(descriptor_, offset, to, bytes);
  } catch (const Error& error) {
    fail(std::string("cannot be used: ") + error.what());
  }
}

void SafetensorsFile::parse(const std::string& header) {
  std::set<std::string> seen;
  const auto no_duplicates = [&](int depth, nlohmann::json::parse_event_t event,
                                 nlohmann::json& value) {
    if (depth == 1 && event == nlohmann::json::parse_event_t::key &&
        !seen.insert(value.get<std::string>()).second) {
      fail("is damaged: it names '" + value.get<std::string>() + "' twice");
    }
    return true;
  };
  nlohmann::json json;
  try {
    json = nlohmann::json::parse(header, no_duplicates);
  } catch (const nlohmann::json::exception&) {
    fail("is no safetensors file: its header is no JSON");
  }
  if (!json.is_object()) fail("is no safetensors file: its header is no JSON object");
  for (const auto& [name, value] : json.items()) {
    try {
      if (name == "__metadata__") {
        metadata_ = value.get<std::map<std::string, std::string>>();
        const auto checksum = metadata_.find(checksum_key);
        if (checksum == metadata_.end()) continue;
        checksum_ = std::move(checksum->second);
        metadata_.erase(checksum);
        continue;
      }
      const std::string type = value.at("dtype").get<std::string>();
      if (type != "F32") throw Error("its elements are " + type + "; only F32 is read");
      const Shape shape = shape_of(value.at("shape"));
      const auto& offsets = value.at("data_offsets");
      if (!offsets.is_array() || offsets.size() != 2)
        throw Error("its data_offsets are not two numbers");
      const std::uint64_t begin = whole_number(offsets[0]);
      const std::uint64_t end = whole_number(offsets[1]);
      const std::uint64_t bytes = elements_of(shape) * sizeof(float);
      if (begin > end || end - begin != bytes || end > file_bytes_ - data_begin_) {
        throw Error("its bytes " + std::to_string(begin) + " to " + std::to_string(end) +
                    " do not fit its shape " + shape.str() + " or the file's length");
      }
      entries_.push_back({name, shape, data_begin_ + begin});
    } catch (const nlohmann::json::exception&) {
      fail("is damaged: the entry of '" + name + "' is not understood");
    } catch (const Error& error) {
      fail("cannot be used: '" + name + "': " + error.what());
    }
  }
  // Arrays follow one another without overlap or gap, up to the end: the header declares all that a
  // file holds. Where an empty array shares its offset with the next one, it comes first.
  std::sort(
      entries_.begin(), entries_.end(), [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
        return std::pair(a.offset, a.shape.elements()) < std::pair(b.offset, b.shape.elements());
      });
  std::uint64_t expected = data_begin_;
  for (const SafetensorsEntry& entry : entries_) {
    if (entry.offset != expected) {
      fail("is damaged: the bytes of '" + entry.name +
           (entry.offset < expected ? "' overlap the array before" : "' leave a gap before them"));
    }
    expected += elements_of(entry.shape) * sizeof(float);
  }
  if (expected != file_bytes_) {
    fail("is damaged: " + std::to_string(file_bytes_ - expected) +
         " bytes after the last array belong to none");
  }
}

void SafetensorsFile::verify() const {
  if (checksum_.empty()) return;
  std::vector<char> piece(std::size_t{1} << 20);
  std::uint32_t crc = 0;
  for (std::uint64_t at = data_begin_; at < file_bytes_; at += piece.size()) {
    const auto bytes =
        static_cast<std::size_t>(std::min<std::uint64_t>(piece.size(), file_bytes_ - at));
    read_bytes(piece.data(), bytes, at);
    crc = crc32c(crc, piece.data(), bytes);
  }
  if (checksum_text(crc) != checksum_)
    fail("is damaged: its checksum is " + checksum_text(crc) + ", and " + checksum_ +
         " was written");
}

void SafetensorsFile::read(const SafetensorsEntry& entry, float* values) const {
  read_bytes(values, static_cast<std::uint64_t>(entry.shape.elements()) * sizeof(float),
             entry.offset);
}

}  // namespace duplex
