// Frames over a socket, protected as the two ranks agreed.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "net/crypto/digest.h"
#include "net/crypto/sealing.h"
#include "net/wire/frame.h"
#include "net/wire/protection.h"
#include "net/wire/socket.h"

namespace duplex::net {

/// The secrets that the two directions of a connection begin with (Sealing).
struct DirectionSecrets {
  Digest out{}, in{};
};

enum class Payload { copied, borrowed };

/// A frame that has come and was not taken.
struct PeekedFrame {
  FrameHeader header;
  std::vector<std::uint8_t> payload;
};

/// It is movable. One thread may write while another reads. Its functions throw NetworkError as
/// Socket's do; bytes that are not the peer's count as a lost peer (Exit::peer_lost). After a
/// failure it is of no more use.
class FrameStream {
 public:
  FrameStream() = default;
  explicit FrameStream(Socket socket) : socket_(std::move(socket)) {}

  Socket& socket() { return socket_; }
  const Socket& socket() const { return socket_; }

  /// Protects all frames from here on, in both directions. The secrets are for Protection::sealed.
  void protect(Protection protection, const DirectionSecrets& secrets);
  Protection protection() const { return protection_; }
  /// Bytes on the wire of a frame with so many bytes of payload.
  std::uint64_t bytes_of(std::uint64_t length) const { return frame_bytes(protection_, length); }

  /// Writes a frame; the payload has `header.length` bytes. If it is `borrowed`, it is not copied
  /// where that can be done: then Socket::write_borrowed says how long it must not change, and the
  /// call is made under WithoutSigpipe.
  void write(const FrameHeader& header, const void* payload, Deadline deadline, const char* phase,
             Payload kind = Payload::copied);

  /// The header is the peer's, but check_header() has not looked at it.
  FrameHeader read_header(Deadline deadline, const char* phase);
  /// Reads the whole payload of the header that was read last; `size`: its length. What lies in
  /// `to` is the peer's when the call has returned, not before.
  void read_payload(void* to, std::size_t size, Deadline deadline, const char* phase);

  /// Returns the frames that have come as a whole within the next `most_bytes`, without taking them
  /// or waiting. Throws NetworkError for bytes that are not the peer's.
  std::vector<PeekedFrame> peek(std::size_t most_bytes) const;

 private:
  void write_sealed(const FrameHeader& header, const void* payload, Deadline deadline,
                    const char* phase);
  void read_sealed(void* to, std::size_t size, Deadline deadline, const char* phase);
  bool peek_part(const std::uint8_t* from, std::size_t size, std::uint64_t number, void* to) const;
  [[noreturn]] void fail_to_open(const char* phase) const;

  Socket socket_;
  Protection protection_ = Protection::none;
  std::unique_ptr<Sealing> seals_;    ///< Used by the thread that writes.
  std::unique_ptr<Sealing> opens_;    ///< Used by the thread that reads.
  std::vector<std::uint8_t> sealed_;  ///< Bytes written next; used by the thread that writes.
};

}  // namespace duplex::net
