// A peer that speaks the protocol from its description in PROTOCOL.md, byte by byte, without net's
// encoders. Tests let ranks meet it.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "net/rendezvous/key.h"
#include "net/wire/socket.h"

namespace duplex::net {

using Bytes = std::vector<std::uint8_t>;

template <class Integer>
void put(Bytes& bytes, Integer value) {
  for (std::size_t i = 0; i < sizeof value; ++i)
    bytes.push_back(static_cast<std::uint8_t>(static_cast<std::uint64_t>(value) >> (8 * i)));
}
inline void put_text(Bytes& bytes, const std::string& text) {
  put(bytes, static_cast<std::uint32_t>(text.size()));
  bytes.insert(bytes.end(), text.begin(), text.end());
}
inline void put_digest(Bytes& bytes, const Digest& digest) {
  bytes.insert(bytes.end(), digest.begin(), digest.end());
}
inline std::uint64_t get(const Bytes& bytes, std::size_t at, std::size_t size) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i) value |= std::uint64_t{bytes[at + i]} << (8 * i);
  return value;
}

/// A frame as it lies on the wire.
struct RawFrame {
  std::uint16_t kind = 0;  ///< With 256 times the coding.
  std::uint32_t parameter = 0, chunk = 0;
  std::uint64_t step = 0;
  Bytes payload;
  std::uint32_t magic = 0x4c505844;
  std::uint16_t version = 6;
  std::uint64_t length = ~std::uint64_t{0};  ///< Length in the header; all ones: the payload's.

  Bytes bytes() const {
    Bytes all;
    put(all, magic);
    put(all, version);
    put(all, kind);
    put(all, parameter);
    put(all, chunk);
    put(all, step);
    put(all, length == ~std::uint64_t{0} ? payload.size() : length);
    all.insert(all.end(), payload.begin(), payload.end());
    return all;
  }
};

inline Deadline soon() {
  return Clock::now() + std::chrono::seconds(20);
}

inline void send_raw(Socket& socket, const RawFrame& frame) {
  const Bytes bytes = frame.bytes();
  socket.write_all(bytes.data(), bytes.size(), nullptr, 0, soon(), "testing");
}
inline RawFrame receive_raw(Socket& socket) {
  Bytes header(32);
  socket.read_exact(header.data(), header.size(), soon(), "testing");
  RawFrame frame;
  frame.magic = static_cast<std::uint32_t>(get(header, 0, 4));
  frame.version = static_cast<std::uint16_t>(get(header, 4, 2));
  frame.kind = static_cast<std::uint16_t>(get(header, 6, 2));
  frame.parameter = static_cast<std::uint32_t>(get(header, 8, 4));
  frame.chunk = static_cast<std::uint32_t>(get(header, 12, 4));
  frame.step = get(header, 16, 8);
  frame.length = get(header, 24, 8);
  frame.payload.resize(frame.length);
  socket.read_exact(frame.payload.data(), frame.payload.size(), soon(), "testing");
  return frame;
}

/// Everything that a raw peer says of itself in the handshake.
struct RawSelf {
  std::int32_t rank = 1, wanted = 0, size = 2;
  std::string job = "test", model = "model", data = "data", settings = "settings", start = "start";
  Key key;
  std::uint16_t version = 6;
  std::uint8_t protection = 0, refused = 0;
};

inline std::string raw_text(const Bytes& payload, std::size_t at = 0) {
  const auto size = static_cast<std::size_t>(get(payload, at, 4));
  return std::string(payload.begin() + static_cast<std::ptrdiff_t>(at) + 4,
                     payload.begin() + static_cast<std::ptrdiff_t>(at + 4 + size));
}

/// Shakes hands as the connecting side; calls `accepted`, if it is given, when the other side has
/// accepted it, which still waits for its pings. Returns "" if it was accepted, else the reason of
/// the reject.
inline std::string raw_handshake(Socket& socket, const RawSelf& self,
                                 const std::function<void()>& accepted = {}) {
  const auto mac = [&](const std::string& side, const Bytes& a, const Bytes& b, const Bytes& c) {
    std::string text = "duplex 6 " + side + '\0';
    for (const Bytes* part : {&a, &b, &c}) text.append(part->begin(), part->end());
    return self.key.hmac(text);
  };
  RawFrame hello;
  hello.kind = 1;
  hello.version = self.version;
  put(hello.payload, self.rank);
  put(hello.payload, self.wanted);
  put_digest(hello.payload, random_digest());
  put_digest(hello.payload, Digest{});  // No public key, since its frames are plain.
  send_raw(socket, hello);
  const RawFrame challenge = receive_raw(socket);
  if (challenge.kind == 5) return raw_text(challenge.payload);

  RawFrame response;
  response.kind = 3;
  put(response.payload, self.size);
  put(response.payload, self.protection);
  put(response.payload, self.refused);
  put_text(response.payload, self.job);
  for (const std::string* text : {&self.model, &self.data, &self.settings, &self.start}) {
    put_text(response.payload, *text);
    put_digest(response.payload, sha256(*text));
  }
  Bytes blank = response.payload;
  put_digest(blank, Digest{});
  put_digest(response.payload, mac("connects", hello.payload, challenge.payload, blank));
  send_raw(socket, response);

  const RawFrame accept = receive_raw(socket);
  if (accept.kind == 5) return raw_text(accept.payload);
  Bytes said = accept.payload;
  std::fill(said.end() - 32, said.end(), std::uint8_t{0});
  const Digest proof = mac("listens", hello.payload, challenge.payload, said);
  if (accept.kind != 4 || !std::equal(proof.begin(), proof.end(), accept.payload.end() - 32))
    return "the listening side's proof is wrong";
  if (accepted) accepted();
  for (std::uint64_t i = 0; i < 8; ++i) {
    RawFrame ping;
    ping.kind = 6;
    ping.step = i;
    send_raw(socket, ping);
    const RawFrame pong = receive_raw(socket);
    if (pong.kind != 7 || pong.step != i || pong.payload.size() != 8) return "a wrong pong";
  }
  return "";
}

}  // namespace duplex::net
