// Frames of the run as a rank reads and peeks at them, plain or with checksums, which the first
// byte says.
#include "net/wire/frame.h"

#include "tests/fuzz/byte_stream.h"

namespace duplex::fuzz {
namespace {

/// A rank knows how long the payload of a frame may be before it reads it.
constexpr std::uint64_t most = 64 * 1024;

void take(net::FrameStream& stream) {
  const Deadline deadline = ByteStream::deadline();
  for (;;) {
    const net::FrameHeader header = stream.read_header(deadline, "reading");
    net::check_header(header);
    if (header.length > most) throw net::ProtocolError("too long");
    Bytes payload(header.length);
    stream.read_payload(payload.data(), payload.size(), deadline, "reading");
    touch(payload.data(), payload.size());
    if (header.kind == net::FrameKind::abort) {
      const net::AbortReason reason = net::decode_abort(payload.data(), payload.size());
      require(reason.code != Exit::ok, "a peer ends a run as a success");
      require(net::printable(reason.text) == reason.text, "a reason steers the terminal");
    }
  }
}

}  // namespace

void frames(const Bytes& input) {
  if (input.empty() || input.size() > 64 * 1024) return;
  const auto protection = input[0] % 2 == 1 ? net::Protection::checksum : net::Protection::none;
  const Bytes sent(input.begin() + 1, input.end());
  ByteStream peer(sent);
  peer.stream.protect(protection, {});
  reads(sent, 64, [&] {
    for (const net::PeekedFrame& frame : peer.stream.peek(4096))
      touch(frame.payload.data(), frame.payload.size());
    take(peer.stream);
  });
}

}  // namespace duplex::fuzz
