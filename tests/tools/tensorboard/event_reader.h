// Reads event files by the descriptions of TFRecord and of Protocol Buffers, with nothing of the
// writer.
#pragma once
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace duplex::tools::testing {

/// CRC32C, bit by bit (RFC 3720, appendix B.4).
inline std::uint32_t slow_crc32c(const std::string& data) {
  std::uint32_t crc = 0xffffffffU;
  for (const char c : data) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1U) != 0 ? 0x82f63b78U : 0U);
  }
  return ~crc;
}

template <class Unsigned>
Unsigned little_endian(const std::string& bytes, std::size_t at) {
  if (at + sizeof(Unsigned) > bytes.size()) throw std::runtime_error("it is too short");
  Unsigned value = 0;
  for (std::size_t i = 0; i < sizeof value; ++i)
    value |= Unsigned{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  return value;
}

/// The data of the records of a file. Throws std::runtime_error where it is not whole records.
inline std::vector<std::string> records_of(const std::string& file) {
  const auto unmasked = [](std::uint32_t masked) {
    const std::uint32_t rotated = masked - 0xa282ead8U;
    return rotated << 15 | rotated >> 17;
  };
  std::vector<std::string> records;
  for (std::size_t at = 0; at < file.size();) {
    const auto length = little_endian<std::uint64_t>(file, at);
    if (unmasked(little_endian<std::uint32_t>(file, at + 8)) != slow_crc32c(file.substr(at, 8)))
      throw std::runtime_error("the checksum of a length is wrong");
    if (length > file.size() - at - 12) throw std::runtime_error("a record is cut off");
    const std::string data = file.substr(at + 12, length);
    if (unmasked(little_endian<std::uint32_t>(file, at + 12 + length)) != slow_crc32c(data))
      throw std::runtime_error("the checksum of a record is wrong");
    records.push_back(data);
    at += 16 + length;
  }
  return records;
}

/// A message's fields by their numbers, each with its bytes, or its number as 8 or 4 bytes.
using Fields = std::multimap<unsigned, std::string>;

inline std::uint64_t take_varint(const std::string& from, std::size_t& at) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const auto byte = static_cast<unsigned char>(from.at(at++));
    value |= std::uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return value;
  }
  throw std::runtime_error("a number has no end");
}

inline Fields fields_of(const std::string& message) {
  Fields fields;
  for (std::size_t at = 0; at < message.size();) {
    const std::uint64_t key = take_varint(message, at);
    std::string value;
    std::size_t length = 0;
    switch (key & 7U) {
      case 0:
        value = std::to_string(take_varint(message, at));
        break;
      case 1:
        length = 8;
        break;
      case 2:
        length = take_varint(message, at);
        break;
      case 5:
        length = 4;
        break;
      default:
        throw std::runtime_error("a field is of no kind");
    }
    if (length > message.size() - at) throw std::runtime_error("a field is cut off");
    if ((key & 7U) != 0) value = message.substr(at, length);
    at += length;
    fields.emplace(static_cast<unsigned>(key >> 3), value);
  }
  return fields;
}

struct Event {
  double wall = 0.0;
  std::uint64_t step = 0;
  std::string version;
  bool starts = false;
  std::map<std::string, float> scalars;
};

template <class Number, class Bits>
Number number_in(const std::string& bytes) {
  const Bits bits = little_endian<Bits>(bytes, 0);
  Number number = 0;
  std::memcpy(&number, &bits, sizeof number);
  return number;
}

inline Event event_of(const std::string& record) {
  Event event;
  for (const auto& [field, value] : fields_of(record)) {
    if (field == 1) event.wall = number_in<double, std::uint64_t>(value);
    if (field == 2) event.step = std::stoull(value);
    if (field == 3) event.version = value;
    if (field == 7) event.starts = fields_of(value).find(1)->second == "1";
    if (field != 5) continue;
    for (const auto& [number, one] : fields_of(value)) {
      if (number != 1) throw std::runtime_error("a summary has other fields than values");
      const Fields parts = fields_of(one);
      event.scalars[parts.find(1)->second] = number_in<float, std::uint32_t>(parts.find(2)->second);
    }
  }
  return event;
}

inline std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::vector<Event> read_events(const std::string& path) {
  std::vector<Event> events;
  for (const std::string& record : records_of(bytes_of(path))) events.push_back(event_of(record));
  return events;
}

}  // namespace duplex::tools::testing
