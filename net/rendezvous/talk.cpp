#include "net/rendezvous/talk.h"

#include <algorithm>
#include <utility>

#include "core/clock.h"
#include "net/rendezvous/handshake.h"

namespace duplex::net {
namespace {

/// The reason, and behind it the code and the proof, if they are there.
Rejected rejected(const std::vector<std::uint8_t>& payload) {
  PayloadReader reader(payload.data(), payload.size());
  std::string reason;
  reader.text(reason);
  if (reader.left() == 0) return {reason, Exit::failed, {}};
  std::uint8_t code = 0;
  Digest proof{};
  reader.number(code);
  reader.raw(proof);
  reader.done();
  return {reason, code >= 1 && code <= 4 ? static_cast<Exit>(code) : Exit::failed, proof};
}

}  // namespace

void Talk::send(FrameKind kind, const std::vector<std::uint8_t>& payload, std::uint64_t step) {
  FrameHeader header;
  header.kind = kind;
  header.step = step;
  header.length = payload.size();
  const std::int64_t first = clock_ns();
  stream_.write(header, payload.data(), deadline_, phase_);
  record(header, true, first);
}

std::vector<std::uint8_t> Talk::receive(FrameKind kind, std::uint64_t step, std::uint64_t limit) {
  const FrameHeader header = stream_.read_header(deadline_, phase_);
  const std::int64_t first = clock_ns();
  const Socket& socket = stream_.socket();
  if (header.magic != frame_magic)
    throw ProtocolError(socket.peer() + " does not speak Duplex's protocol");
  if (header.length > limit)
    throw ProtocolError(socket.peer() + " sent a " + name_of(header.kind) + " of " +
                        std::to_string(header.length) + " bytes");
  std::vector<std::uint8_t> payload(header.length);
  stream_.read_payload(payload.data(), payload.size(), deadline_, phase_);
  record(header, false, first);
  // Every version can read another's reject, and nothing else of it.
  if (header.kind == FrameKind::reject) throw rejected(payload);
  if (header.version != protocol_version) {
    const std::string message =
        socket.peer() + " speaks version " + std::to_string(header.version) + " of the protocol, " +
        socket.local_address() + " version " + std::to_string(protocol_version) +
        ": build every rank from the same source";
    reject(message);
    throw Mismatch(message, false);
  }
  if (header.kind != kind || header.step != step)
    throw ProtocolError(socket.peer() + " sent a " + name_of(header.kind) + " where a " +
                        name_of(kind) + " is due");
  return payload;
}

void Talk::reject(std::string reason, Exit code,
                  const std::function<Digest(const std::string&)>& prove) {
  reason.resize(std::min<std::size_t>(reason.size(), PayloadReader::text_limit));
  reason = printable(reason);
  PayloadWriter writer;
  writer.text(reason);
  if (prove) {
    writer.number(static_cast<std::uint8_t>(code));
    writer.raw(prove(reason + static_cast<char>(code)));
  }
  try {
    send(FrameKind::reject, writer.take());
  } catch (const NetworkError&) {
  }
}

std::vector<FrameRecord> Talk::frames(int rank) {
  for (FrameRecord& frame : frames_) frame.peer = rank;
  return std::move(frames_);
}

void Talk::record(const FrameHeader& header, bool sent, std::int64_t first) {
  FrameRecord record;
  record.kind = header.kind;
  record.step = header.step;
  record.sent = sent;
  record.bytes = stream_.bytes_of(header.length);
  record.queued = record.first = first;
  record.last = clock_ns();
  frames_.push_back(record);
}

}  // namespace duplex::net
