// The talk of two ranks before the run's connections take over: one frame after the other, each
// with a small message.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "net/crypto/digest.h"
#include "net/ledger/frame_record.h"
#include "net/wire/frame.h"
#include "net/wire/frame_stream.h"

namespace duplex::net {

/// Returns the payload of a message, which a function describe(fields, message) describes
/// (PayloadWriter).
template <class Message>
std::vector<std::uint8_t> payload_of(Message message) {
  PayloadWriter writer;
  describe(writer, message);
  return writer.take();
}

/// Reads it back. Throws ProtocolError if it is not such a message.
template <class Message>
Message parse(const std::vector<std::uint8_t>& payload) {
  Message message;
  PayloadReader reader(payload.data(), payload.size());
  describe(reader, message);
  reader.done();
  return message;
}

/// A `reject` has come. Only its proof can show that it is of a rank of this run.
class Rejected : public Error {
 public:
  Rejected(const std::string& reason, Exit code, const std::optional<Digest>& proof)
      : Error(reason, code), proof(proof) {}
  std::optional<Digest> proof;  ///< None: the peer could not give one.
};

/// Sends and receives frames on one stream, and records them for the ledger. Its functions throw
/// NetworkError; `phase` says in such an error what the ranks were doing.
class Talk {
 public:
  Talk(FrameStream& stream, Deadline deadline, const char* phase = "shaking hands")
      : stream_(stream), deadline_(deadline), phase_(phase) {}

  void send(FrameKind kind, const std::vector<std::uint8_t>& payload, std::uint64_t step = 0);
  /// The most bytes of a payload, unless a call says otherwise.
  static constexpr std::uint64_t usual_limit = 8192;

  /// Returns the next frame's payload. Throws ProtocolError if it is not of `kind` and `step` or
  /// longer than `limit`, Rejected if it is a `reject`, and Mismatch if it is of another version of
  /// the protocol.
  std::vector<std::uint8_t> receive(FrameKind kind, std::uint64_t step = 0,
                                    std::uint64_t limit = usual_limit);
  /// Tells the peer why it is turned away, with the code to end with and a proof that `prove` makes
  /// of the reason and, behind it, the code's byte; empty: without both. The peer may be gone;
  /// telling it is a courtesy.
  void reject(std::string reason, Exit code = Exit::failed,
              const std::function<Digest(const std::string&)>& prove = {});
  /// Takes the records of all frames so far, with that rank as the peer.
  std::vector<FrameRecord> frames(int rank);

 private:
  void record(const FrameHeader& header, bool sent, std::int64_t first);

  FrameStream& stream_;
  Deadline deadline_;
  const char* phase_;
  std::vector<FrameRecord> frames_;
};

}  // namespace duplex::net
