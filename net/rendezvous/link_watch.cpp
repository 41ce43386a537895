#include "net/rendezvous/link_watch.h"

#include <algorithm>
#include <cstdint>

#include "core/clock.h"
#include "net/rendezvous/resume.h"

namespace duplex::net {
namespace {

/// Time that a failing rank gives its peers to take the reason.
constexpr std::chrono::milliseconds last_words{1000};
/// An offer and an abort behind it.
constexpr std::size_t looked_at = 2 * header_bytes + ResumeOffer::most_bytes + abort_limit;

/// The bytes that have come and were not read; `closed`: no more will come behind them.
struct Unread {
  std::vector<std::uint8_t> bytes;
  bool closed = false;
};

Unread unread(const Socket& socket) {
  Unread unread;
  unread.closed = socket.ended();  // Asked first: what came before the end is there then.
  unread.bytes.resize(looked_at);
  const std::ptrdiff_t got = socket.peek(unread.bytes.data(), unread.bytes.size());
  unread.closed = unread.closed || got < 0;
  unread.bytes.resize(static_cast<std::size_t>(std::max<std::ptrdiff_t>(got, 0)));
  return unread;
}

/// The header of the frame that begins at `at`; none: the frame is not there as a whole.
std::optional<FrameHeader> frame_at(const std::vector<std::uint8_t>& bytes, std::size_t at) {
  if (bytes.size() < at + header_bytes) return std::nullopt;
  HeaderBytes part;
  std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), header_bytes, part.begin());
  const FrameHeader header = decode(part);
  if (header.length > bytes.size() - at - header_bytes) return std::nullopt;
  return header;
}

}  // namespace

void check_links(const std::vector<Link>& links, double waited) {
  for (const Link& link : links) {
    const Unread come = unread(link.socket);
    std::size_t at = 0;
    auto header = frame_at(come.bytes, at);
    while (header && header->kind == FrameKind::offer) {
      at += header_bytes + header->length;
      header = frame_at(come.bytes, at);
    }
    if (header && header->kind == FrameKind::abort) {
      const AbortReason reason =
          decode_abort(come.bytes.data() + at + header_bytes, header->length);
      throw Error(link.peer + " ended the run: " + reason.text, reason.code);
    }
    if (come.closed)
      throw NetworkError("recv", link.peer, "waiting for other ranks", "the connection was closed",
                         waited, Exit::peer_lost);
  }
}

bool has_next(const Link& link, FrameKind kind) {
  const auto header = frame_at(unread(link.socket).bytes, 0);
  return header && header->kind == kind;
}

void end_links(std::vector<Link>& links, const AbortReason& reason) {
  const auto payload = encode(reason);
  FrameHeader header;
  header.kind = FrameKind::abort;
  header.length = payload.size();
  const HeaderBytes bytes = encode(header);
  const Deadline deadline = Clock::now() + last_words;
  for (Link& link : links) {
    try {
      link.socket.write_all(bytes.data(), bytes.size(), payload.data(), payload.size(), deadline,
                            "ending the run");
      link.socket.end_sending();
    } catch (const NetworkError&) {  // The peer sees that the connection ends.
    }
  }
  for (Link& link : links) link.socket.drain(deadline);
}

}  // namespace duplex::net
