// The bytes of a connection: what the ledger has of each frame, and what the kernel counted.
#include <chrono>
#include <thread>

#include "core/clock.h"
#include "net/connection/connection.h"

namespace duplex::net {

void Connection::record(const FrameHeader& header, bool sent, std::int64_t queued,
                        std::int64_t first, std::size_t count) {
  FrameRecord record;
  record.step = header.step;
  record.parameter = header.parameter;
  record.chunk = header.chunk;
  record.kind = header.kind;
  record.sent = sent;
  record.peer = link_.rank;
  record.bytes = frame_bytes(protection_, header.length);
  if (count > 0)
    record.saved = static_cast<std::int64_t>(coded_bytes(Coding::float32, count)) -
                   static_cast<std::int64_t>(header.length);
  record.queued = queued;
  record.first = first;
  record.last = clock_ns();
  (sent ? sent_ : received_).add(record);
}

ConnectionBytes Connection::check_counters(Deadline deadline) const {
  KernelCounters kernel = link_.stream.socket().counters();
  ConnectionBytes bytes;
  bytes.peer = link_.rank;
  if (protection_ != Protection::none) bytes.protection = name_of(protection_);
  bytes.sent = sent_.bytes().sent;
  bytes.received = received_.bytes().received;
  bytes.window = link_.stream.socket().limit();
  bytes.pace = pace_;
  if (!kernel.known) return bytes;
  // The goodbye may still lie in the kernel; only the counter itself tells when it has left.
  const Clock::time_point from = Clock::now();
  while (kernel.sent < bytes.sent && !kernel.broken && Clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    kernel = link_.stream.socket().counters();
  }
  if (kernel.sent < bytes.sent && (kernel.broken || kernel.pending))
    throw NetworkError("send", link_.peer, "saying goodbye", "the peer no longer acknowledges",
                       std::chrono::duration<double>(Clock::now() - from).count(), Exit::peer_lost);
  const auto check = [&](const char* what, std::uint64_t ledger, std::uint64_t counted) {
    if (ledger != counted)
      throw Error("the ledger is wrong: " + std::to_string(ledger) + " bytes " + what + " " +
                  link_.peer + ", but the kernel counted " + std::to_string(counted));
  };
  check("sent to", bytes.sent, kernel.sent);
  check("received from", bytes.received, kernel.received);
  bytes.kernel_sent = kernel.sent;
  bytes.kernel_received = kernel.received;
  bytes.kernel_sent_again = kernel.retransmitted;
  bytes.counted = true;
  return bytes;
}

}  // namespace duplex::net
