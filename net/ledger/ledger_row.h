// Rows of ledger-RANK.csv and traffic-RANK.csv, as they are written and read.
#pragma once
#include <cstdint>
#include <string>

#include "core/files/csv.h"
#include "net/ledger/traffic.h"

namespace duplex::net {

/// A frame. Times are nanoseconds in the coordinator's time.
struct LedgerRow {
  std::int32_t rank = 0;  ///< Whose ledger it is.
  bool sent = false;      ///< By this rank; else received.
  std::int32_t peer = -1;
  std::string kind;  ///< name_of(FrameKind).
  std::uint64_t step = 0;
  std::uint32_t parameter = 0, chunk = 0;
  std::uint64_t bytes = 0;
  std::int64_t queued_ns = 0, first_ns = 0, last_ns = 0;
  std::int64_t bytes_saved = 0;  ///< By the coding of its values.
};

template <class Fields>
void describe(Fields& f, LedgerRow& r) {
  f.integer("rank", r.rank);
  f.either("direction", r.sent, "sent", "received");
  f.integer("peer", r.peer);
  f.text("kind", r.kind);
  f.integer("step", r.step);
  f.integer("parameter", r.parameter);
  f.integer("chunk", r.chunk);
  f.integer("bytes", r.bytes);
  f.integer("queued_ns", r.queued_ns);
  f.integer("first_ns", r.first_ns);
  f.integer("last_ns", r.last_ns);
  f.later("bytes_saved", r.bytes_saved);
}

/// A row of traffic-RANK.csv: a step, or a part of one; the parts of a step add up.
template <class Fields>
void describe(Fields& f, StepTraffic& r) {
  f.integer("step", r.step);
  f.integer("bytes_sent", r.sent);
  f.integer("bytes_received", r.received);
  f.integer("sending_ns", r.sending_ns);
  f.integer("receiving_ns", r.receiving_ns);
  f.integer("wire_ns", r.wire_ns);
  f.integer("exposed_ns", r.exposed_ns);
  f.integer("waited_ns", r.waited_ns);
  f.later("saved_sent", r.saved_sent);
  f.later("saved_received", r.saved_received);
}

}  // namespace duplex::net
