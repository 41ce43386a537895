// The wire format of Protocol Buffers, in which ONNX files are written: fields of a number and a
// value each. https://protobuf.dev/programming-guides/encoding/
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace duplex::models::onnx {

/// Collects the fields of a message.
class MessageWriter {
 public:
  void number(int field, std::int64_t value);  ///< int32, int64 and enum.
  void decimal(int field, float value);
  /// A text, bytes or another message.
  void bytes(int field, const std::string& value);
  /// The beginning of a field of so many bytes, which the caller writes behind all others.
  void begin_bytes(int field, std::uint64_t size);

  const std::string& str() const { return text_; }

 private:
  void varint(std::uint64_t value);
  void key(int field, int type);

  std::string text_;
};

/// Bytes of a message that lie in memory of the caller.
struct Span {
  const std::uint8_t* data = nullptr;
  std::size_t size = 0;

  std::string text() const { return {reinterpret_cast<const char*>(data), size}; }
};

/// Goes through the fields of a message. Every function throws Error with the reason alone where
/// the bytes end too early or are no fields.
class MessageReader {
 public:
  explicit MessageReader(Span message) : message_(message) {}

  /// Passes to the next field, over the value of the one before it where nobody has read it.
  /// Returns its number; 0: there is none.
  int next();
  // These read the field's value, and throw where it is of another type.
  std::int64_t number();
  float decimal();
  Span bytes();
  /// Returns whether the value is some bytes: repeated numbers may be packed into such.
  bool has_bytes() const;

  // Values one behind another in such bytes, without fields.
  bool at_end() const { return at_ == message_.size; }
  std::int64_t packed_number() { return static_cast<std::int64_t>(varint()); }
  float packed_decimal();

 private:
  std::uint64_t varint();
  const std::uint8_t* take(std::uint64_t size);
  void expect(int type);

  Span message_;
  std::size_t at_ = 0;
  int type_ = 0;
  bool unread_ = false;
};

}  // namespace duplex::models::onnx
