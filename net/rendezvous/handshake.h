// In the handshake two ranks tell who they are, prove that they know the key, compare what they
// train on which data and how, and measure how their clocks differ. PROTOCOL.md has the messages
// and the states.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "net/ledger/frame_record.h"
#include "net/rendezvous/key.h"
#include "net/wire/frame_stream.h"

namespace duplex::net {

/// Something that ranks compare: a digest, and a few words that a message can show.
struct Fingerprint {
  std::string text;
  Digest digest{};
};

/// The fingerprint of `text` itself.
inline Fingerprint fingerprint(const std::string& text) {
  return {text, sha256(text)};
}

/// Everything that all ranks of a run must agree on.
struct Identity {
  std::string job;  ///< Tells runs apart that share machines and ports.
  Fingerprint model;
  Fingerprint data;
  Fingerprint settings;     ///< Mode, shards, optimiser, batch, seed, ..., with ", " between them.
  Fingerprint start;        ///< Weights and running statistics of the first step; the optimiser
                            ///< begins with zeros.
  Exit refused = Exit::ok;  ///< The exit code of a rank that cannot start; ok: it can.
};

/// The identity that a rank sends in place of its own if it cannot start (Mesh::tell_cannot_start);
/// `reason` is for the peers, which end with it.
Identity refusal(const std::string& job, const AbortReason& reason);

/// Another rank's clock against this one's: theirs = ours + offset, wrong by at most `error`.
struct ClockOffset {
  std::int64_t offset_ns = 0;
  std::int64_t error_ns = 0;  ///< Half of the shortest round trip.
  std::int64_t epoch_ns = 0;  ///< When the run began, on their clock.
};

/// Everything that this side knows before the handshake.
struct Self {
  int rank = 0;
  int size = 1;
  Identity identity;
  Key key;
  ProtectionSpec protection;
  std::int64_t epoch_ns = 0;
};

struct HandshakeResult {
  int rank = -1;
  std::vector<FrameRecord> frames;
  ClockOffset clock;  ///< Measured by the side that connects; zero on the other.
};

/// The two ranks do not belong together. `fatal`: the other one proved that it is of this run, so
/// that the run cannot work; otherwise it is a stranger. The code is that of a rank which cannot
/// start, where that is why.
class Mismatch : public Error {
 public:
  Mismatch(const std::string& message, bool fatal, int rank = -1, Exit code = Exit::failed)
      : Error(message, code), fatal(fatal), rank(rank) {}
  bool fatal;
  int rank;  ///< The other's, if it connected and has proved it; -1: not known.
};

std::string rank_name(int rank, const std::string& address);  ///< "rank 2 (10.0.0.3:4711)".

/// Shakes hands as the side that connected, to `rank`. Once both sides have proved themselves, the
/// stream protects its frames. Throws NetworkError, ProtocolError, or Mismatch, which names both
/// sides whichever of them found it out.
HandshakeResult client_handshake(FrameStream& stream, const Self& self, int rank,
                                 Deadline deadline);

/// Shakes hands as the side that was connected to. Once the other has proved that it is of this
/// run, calls `welcome(rank)`, which throws Mismatch if that rank is not expected.
HandshakeResult server_handshake(FrameStream& stream, const Self& self,
                                 const std::function<void(int rank)>& welcome, Deadline deadline);

}  // namespace duplex::net
