#include "net/rendezvous/link_watch.h"

#include "core/clock.h"
#include "net/rendezvous/held_files.h"

namespace duplex::net {
namespace {

/// Time that a failing rank gives its peers to take the reason.
constexpr std::chrono::milliseconds last_words{1000};
/// An offer, the files that go with it, and an abort behind them.
constexpr std::size_t looked_at = frame_bytes(Protection::sealed, resume_limit) +
                                  frame_bytes(Protection::sealed, most_held_bytes) +
                                  frame_bytes(Protection::sealed, abort_limit);

}  // namespace

void check_links(const std::vector<Link>& links, double waited) {
  for (const Link& link : links) {
    // Whether it has ended is asked first: what came before the end is there then.
    const bool ended = link.stream.socket().ended();
    bool says_more = false;
    for (const PeekedFrame& frame : link.stream.peek(looked_at)) {
      if (frame.header.kind == FrameKind::abort) {
        const AbortReason reason = decode_abort(frame.payload.data(), frame.payload.size());
        throw Error(link.peer + " ended the run: " + reason.text, reason.code);
      }
      // Whoever waits for such a frame reads it first, even where nothing follows it.
      says_more = frame.header.kind != FrameKind::offer && frame.header.kind != FrameKind::holding;
      if (says_more) break;
    }
    if (ended && !says_more)
      throw NetworkError("recv", link.peer, "waiting for other ranks", "the connection was closed",
                         waited, Exit::peer_lost);
  }
}

bool has_next(const Link& link, FrameKind kind) {
  const auto frames = link.stream.peek(looked_at);
  return !frames.empty() && frames.front().header.kind == kind;
}

void end_links(std::vector<Link>& links, const AbortReason& reason) {
  const auto payload = encode(reason);
  FrameHeader header;
  header.kind = FrameKind::abort;
  header.length = payload.size();
  const Deadline deadline = Clock::now() + last_words;
  for (Link& link : links) {
    try {
      link.stream.write(header, payload.data(), deadline, "ending the run");
      link.stream.socket().end_sending();
    } catch (const NetworkError&) {  // The peer sees that the connection ends.
    }
  }
  for (Link& link : links) link.stream.socket().drain(deadline);
}

}  // namespace duplex::net
