// A frame is a fixed header of 32 bytes, little-endian, and `length` bytes of payload. PROTOCOL.md
// has the tables.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/error.h"
#include "net/coding/coding.h"

namespace duplex::net {

constexpr std::uint32_t frame_magic = 0x4c505844;  ///< "DXPL" on the wire.
constexpr std::uint16_t protocol_version = 6;

enum class FrameKind : std::uint8_t {
  // Kinds of the handshake, in its order.
  hello = 1,
  challenge = 2,
  response = 3,
  accept = 4,
  reject = 5,
  ping = 6,
  pong = 7,
  offer = 8,
  resume = 9,
  holding = 10,
  transfers = 11,
  file = 12,
  // Kinds of the run.
  weights = 16,
  gradient = 17,
  heartbeat = 18,
  report = 19,
  goodbye = 20,
  abort = 21,
  done = 22,
  ask = 23,
  grant = 24,
  release = 25,
  window = 26,
  pace = 27,
  checkpoint = 28,
  snapshot = 29,
  state = 30,
  lease = 31,
  factors = 32,
  map = 33,
  map_gradient = 34,
};

/// Returns the kind's name, such as "weights", or "kind 77" for one that is none.
std::string name_of(FrameKind kind);

/// Returns whether frames of this kind carry a map of a network that is cut, or its gradient.
constexpr bool is_map(FrameKind kind) {
  return kind == FrameKind::map || kind == FrameKind::map_gradient;
}

/// Returns whether frames of this kind carry weights, a gradient, or factors of one, or a map.
constexpr bool is_data(FrameKind kind) {
  return kind == FrameKind::weights || kind == FrameKind::gradient || kind == FrameKind::factors ||
         is_map(kind);
}

/// The round that weights or a gradient belong to: s + 1 for gradients, factors and maps of step s
/// and for the weights of step s + 1, which they make; 0 for the initial weights.
constexpr std::uint64_t round_of(FrameKind kind, std::uint64_t step) {
  return kind == FrameKind::weights ? step : step + 1;
}

/// The header, which crosses the wire as it lies in memory. Fields that a kind does not use are 0.
struct FrameHeader {
  std::uint32_t magic = frame_magic;
  std::uint16_t version = protocol_version;
  FrameKind kind = FrameKind::hello;
  Coding coding = Coding::float32;  ///< How weights or a gradient are written.
  std::uint32_t parameter = 0;
  std::uint32_t chunk = 0;   ///< Number within the parameter.
  std::uint64_t step = 0;    ///< Step of a gradient, or that weights are for; other kinds put their
                             ///< number here (PROTOCOL.md).
  std::uint64_t length = 0;  ///< Bytes of payload.
};

constexpr std::size_t header_bytes = 32;
static_assert(sizeof(FrameHeader) == header_bytes &&
                  std::has_unique_object_representations_v<FrameHeader>,
              "the fields lie one behind the other, without padding");
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the wire is little-endian");
static_assert(header_bytes % 8 == 0, "payloads of floats stay aligned");

/// A peer has sent what cannot be right. It costs the peer its connection.
class ProtocolError : public Error {
 public:
  using Error::Error;
};

/// Throws ProtocolError, which says why, for bytes that are no header and for a header of another
/// version of the protocol.
void check_header(const FrameHeader& header);

/// Writes the fields of a payload, one after the other: integers little-endian, texts behind a
/// 32-bit length. One function over either class describes a message, so that what is written is
/// what is read:
///   template <class Fields> void describe(Fields& f, Message& m) { f.number(m.a); f.text(m.b); }
class PayloadWriter {
 public:
  template <class Integer>
  void number(const Integer& value) {
    for (std::size_t i = 0; i < sizeof value; ++i)
      bytes_.push_back(static_cast<std::uint8_t>(static_cast<std::uint64_t>(value) >> (8 * i)));
  }
  void text(const std::string& value);
  template <std::size_t size>
  void raw(const std::array<std::uint8_t, size>& value) {
    bytes_.insert(bytes_.end(), value.begin(), value.end());
  }

  std::vector<std::uint8_t> take() { return std::move(bytes_); }

 private:
  std::vector<std::uint8_t> bytes_;
};

/// Replaces every byte of a peer's text that is not of a printable character by '?', so that no
/// text can steer a terminal or forge a line of a log.
std::string printable(std::string text);

/// Reads the fields of a payload. Texts come out as printable() has them. Throws ProtocolError if
/// the payload ends too early, a text is longer than `text_limit`, or something is left over at
/// done().
class PayloadReader {
 public:
  static constexpr std::uint32_t text_limit = 1024;

  PayloadReader(const std::uint8_t* data, std::size_t size) : at_(data), left_(size) {}

  template <class Integer>
  void number(Integer& value) {
    const std::uint8_t* from = take(sizeof value);
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < sizeof value; ++i) bits |= std::uint64_t{from[i]} << (8 * i);
    value = static_cast<Integer>(bits);
  }
  void text(std::string& value);
  template <std::size_t size>
  void raw(std::array<std::uint8_t, size>& value) {
    const std::uint8_t* from = take(size);
    std::copy(from, from + size, value.begin());
  }
  std::size_t left() const { return left_; }  ///< Bytes that have not been read.
  void done() const;

 private:
  const std::uint8_t* take(std::size_t size);

  const std::uint8_t* at_;
  std::size_t left_;
};

/// The payload of `abort`: why a rank ends the run, and the exit code that goes with it.
struct AbortReason {
  std::string text;
  Exit code = Exit::peer_lost;
};
/// The most bytes of an abort's payload.
constexpr std::size_t abort_limit = 8 + PayloadReader::text_limit;
/// The reason for what was thrown: its text, and its code if it has one.
AbortReason reason_of(const std::exception_ptr& cause);
std::vector<std::uint8_t> encode(const AbortReason& reason);
AbortReason decode_abort(const std::uint8_t* data, std::size_t size);

}  // namespace duplex::net
