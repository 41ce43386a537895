#include "models/onnx/wire.h"

#include <cstring>

#include "core/error.h"

namespace duplex::models::onnx {
namespace {

// Types of values on the wire.
constexpr int type_varint = 0, type_64_bits = 1, type_bytes = 2, type_32_bits = 5;
constexpr int type_bits = 3;

/// Floats lie there with the lowest byte first.
float float_of(const std::uint8_t* from) {
  const std::uint32_t bits = std::uint32_t{from[0]} | std::uint32_t{from[1]} << 8 |
                             std::uint32_t{from[2]} << 16 | std::uint32_t{from[3]} << 24;
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace

void MessageWriter::varint(std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) text_ += static_cast<char>(value | 0x80);
  text_ += static_cast<char>(value);
}

void MessageWriter::key(int field, int type) {
  varint(static_cast<std::uint64_t>(field) << type_bits | static_cast<std::uint64_t>(type));
}

void MessageWriter::number(int field, std::int64_t value) {
  key(field, type_varint);
  varint(static_cast<std::uint64_t>(value));
}

void MessageWriter::decimal(int field, float value) {
  key(field, type_32_bits);
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  for (int byte = 0; byte < 4; ++byte) text_ += static_cast<char>(bits >> (8 * byte));
}

void MessageWriter::begin_bytes(int field, std::uint64_t size) {
  key(field, type_bytes);
  varint(size);
}

void MessageWriter::bytes(int field, const std::string& value) {
  begin_bytes(field, value.size());
  text_ += value;
}

std::uint64_t MessageReader::varint() {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const std::uint8_t byte = *take(1);
    value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
  throw Error("a number has more than 64 bits");
}

const std::uint8_t* MessageReader::take(std::uint64_t size) {
  if (size > message_.size - at_) throw Error("it ends too early");
  const std::uint8_t* from = message_.data + at_;
  at_ += static_cast<std::size_t>(size);
  return from;
}

int MessageReader::next() {
  if (unread_) {
    unread_ = false;
    if (type_ == type_varint)
      varint();
    else
      take(type_ == type_64_bits ? 8 : type_ == type_32_bits ? 4 : varint());
  }
  if (at_end()) return 0;
  const std::uint64_t key = varint();
  type_ = static_cast<int>(key & 7);
  const std::uint64_t field = key >> type_bits;
  constexpr std::uint64_t largest_field = (1 << 29) - 1;
  if (field == 0 || field > largest_field) throw Error("it has a field that cannot be");
  if (type_ != type_varint && type_ != type_64_bits && type_ != type_bytes && type_ != type_32_bits)
    throw Error("it has a value of a type that cannot be");
  unread_ = true;
  return static_cast<int>(field);
}

void MessageReader::expect(int type) {
  if (type_ != type || !unread_) throw Error("a value is of another type than ONNX gives it");
  unread_ = false;
}

std::int64_t MessageReader::number() {
  expect(type_varint);
  return static_cast<std::int64_t>(varint());
}

float MessageReader::decimal() {
  expect(type_32_bits);
  return float_of(take(4));
}

Span MessageReader::bytes() {
  expect(type_bytes);
  const std::uint64_t size = varint();
  return {take(size), static_cast<std::size_t>(size)};
}

bool MessageReader::has_bytes() const {
  return type_ == type_bytes;
}

float MessageReader::packed_decimal() {
  return float_of(take(4));
}

}  // namespace duplex::models::onnx
