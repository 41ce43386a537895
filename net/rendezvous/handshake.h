// How two ranks meet: who they are, that both know the key, that they train the same model on the
// same data in the same way, and how their clocks differ. PROTOCOL.md has the messages and the
// states.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "net/ledger/ledger.h"
#include "net/rendezvous/key.h"
#include "net/wire/frame.h"
#include "net/wire/socket.h"

namespace duplex::net {

/// Something that ranks compare: a digest, and a few words that a message can show.
struct Fingerprint {
  std::string text;
  Digest digest{};
};

/// Of `text` itself.
inline Fingerprint fingerprint(const std::string& text) {
  return {text, sha256(text)};
}

/// What every rank of a run must agree on.
struct Identity {
  std::string job;  ///< Tells runs apart that share machines and ports.
  Fingerprint model;
  Fingerprint data;
  Fingerprint settings;  ///< Mode, shards, optimiser, batch, seed, ..., with ", " between them.
  Fingerprint start;     ///< Weights and running statistics of the first step; the optimiser
                         ///< begins with zeros.
};

/// What a rank says in place of what it would train where it cannot start
/// (Mesh::tell_cannot_start).
Identity refusal(const std::string& job, const std::string& reason);

/// Another clock against this one: theirs = ours + offset, wrong by at most `error`.
struct ClockOffset {
  std::int64_t offset_ns = 0;
  std::int64_t error_ns = 0;  ///< Half of the shortest round trip.
  std::int64_t epoch_ns = 0;  ///< When the run began, by their clock.
};

/// What one side knows before the handshake.
struct Self {
  int rank = 0;
  int size = 1;
  Identity identity;
  Key key;
  std::int64_t epoch_ns = 0;
};

struct HandshakeResult {
  int rank = -1;
  std::vector<FrameRecord> frames;
  ClockOffset clock;  ///< Measured by the side that connects; zero on the other.
};

/// The two ranks do not belong together. `fatal`: the other proved to be of this run, so that the
/// run cannot work; otherwise it is a stranger.
class Mismatch : public Error {
 public:
  Mismatch(const std::string& message, bool fatal, int rank = -1)
      : Error(message), fatal(fatal), rank(rank) {}
  bool fatal;
  int rank;  ///< The other's, where it connected and has proved it; -1: not known.
};

std::string rank_name(int rank, const std::string& address);  ///< "rank 2 (10.0.0.3:4711)".

/// The side that connected, to `rank`. Throws NetworkError, ProtocolError, or Mismatch with both
/// sides' names, whichever of them found it out.
HandshakeResult client_handshake(Socket& socket, const Self& self, int rank, Deadline deadline);

/// The side that was connected to. `welcome(rank)` is asked whether a rank is expected, once it has
/// proved to be of this run; it throws Mismatch if not.
HandshakeResult server_handshake(Socket& socket, const Self& self,
                                 const std::function<void(int rank)>& welcome, Deadline deadline);

}  // namespace duplex::net
