// A row of ledger-RANK.csv, as it is written and read.
#pragma once
#include <cstdint>
#include <string>

#include "core/files/csv.h"

namespace duplex::net {

/// Times are nanoseconds in the coordinator's time.
struct LedgerRow {
  std::int32_t rank = 0;  ///< Whose ledger it is.
  bool sent = false;      ///< By this rank; else received.
  std::int32_t peer = -1;
  std::string kind;  ///< name_of(FrameKind).
  std::uint64_t step = 0;
  std::uint32_t parameter = 0, chunk = 0;
  std::uint64_t bytes = 0;
  std::int64_t queued_ns = 0, first_ns = 0, last_ns = 0;
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
}

}  // namespace duplex::net
