// A peer of a run, for the fuzz target of an exchange: it knows what a rank that works as it should
// would send next, and sends that or something else.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "net/rendezvous/mesh.h"
#include "net/store/store.h"
#include "net/topology/topology.h"
#include "net/wire/frame.h"
#include "tests/fuzz/target.h"

namespace duplex::fuzz {

/// This is what all peers and the rank know of their run.
struct ScriptedRun {
  net::Topology topology;
  int rank = 0;  ///< The rank that is under test.
  net::ShardMap map = net::ShardMap::central({}, 0);
  net::Sync sync = net::Sync::join;
  bool semaphore = false;
  net::WireFormat wire;
  std::uint64_t steps = 0;  ///< Of every worker.
};

/// All values of a payload are the same, and have all bits that they need in 16.
constexpr float gradient_value = 1;
inline float weight_of(std::uint64_t step) {
  return 100 + static_cast<float>(step % 1024);
}

/// A frame as it lies on the wire; weights and gradients have those values.
Bytes frame_bytes(const net::FrameHeader& header);
net::FrameHeader header_of(net::FrameKind kind, std::uint64_t step = 0,
                           std::uint32_t parameter = 0);

class ScriptedPeer {
 public:
  ScriptedPeer(const ScriptedRun& run, int rank);
  ~ScriptedPeer();
  ScriptedPeer(const ScriptedPeer&) = delete;
  ScriptedPeer& operator=(const ScriptedPeer&) = delete;

  /// The link of the rank under test to this peer; once.
  net::Link link();

  /// Reads what has come. Returns whether anything had.
  bool hear();
  /// This can be waited on until something has come; -1: nothing more will.
  int descriptor() const { return closed_ || rank_ended_ ? -1 : far_; }

  /// The next frame that is due of it before its end: weights, a gradient, or what its turn needs.
  /// None: something has to come first. It is not sent.
  std::optional<Bytes> due() const;
  /// Sends all that is due. Returns whether anything was.
  bool play();
  /// Says what is due of it at its end. Returns whether anything was.
  bool finish();
  void send(const Bytes& bytes);
  /// The same, and it counts as a peer that does not what it should.
  void misbehave(const Bytes& bytes);
  void close();

  int rank() const { return rank_; }
  const std::string& name() const { return name_; }
  bool misbehaves() const { return misbehaves_; }
  /// Both sides have said goodbye, this one in its turn.
  bool finished() const { return finished_ && rank_parted_; }

  // This is what all that it has sent comes to, as a rank should take it.

  /// Gradients of a chunk, each in its step's turn.
  std::uint64_t pushed(std::size_t chunk) const { return chunks_[chunk].pushed; }
  /// Weights of a chunk.
  std::uint64_t sent(std::size_t chunk) const { return chunks_[chunk].sent; }
  /// The chunk whose payload it began and did not end.
  std::optional<std::size_t> torn() const;
  /// Whether a payload had other values than those above.
  bool odd() const { return odd_; }

 private:
  struct Entry {
    std::uint64_t sent = 0;      ///< Weights that it has sent.
    std::uint64_t pushed = 0;    ///< Gradients that it has sent.
    std::uint64_t received = 0;  ///< Weights or gradients that have come to it.
  };
  enum class Turn { none, asked, held };

  bool trains() const { return run_.topology.is_worker(rank_); }
  bool has_ended(std::uint64_t weights) const;
  Bytes data(net::FrameKind kind, const net::Chunk& chunk, std::uint64_t step) const;
  void hear_frame(const net::FrameHeader& header);
  void count_sent();
  void count(const net::FrameHeader& header, const std::uint8_t* payload);

  const ScriptedRun& run_;
  const int rank_;
  const std::string name_;
  int near_ = -1, far_ = -1;
  std::vector<Entry> chunks_;  ///< By chunk.
  Bytes heard_, sent_;         ///< The frames that have come or gone in part.
  Turn turn_ = Turn::none;
  std::uint64_t grants_ = 0;  ///< That the rank has asked for and not been given.
  std::uint64_t steps_;       ///< That it trains: its own, and what it has been leased.
  bool last_lease_ = false;   ///< It has told the rank that there are no more batches.
  bool rank_done_ = false, rank_parted_ = false, rank_ended_ = false;
  bool misbehaves_ = false, refused_ = false, odd_ = false, closed_ = false;
  bool finished_ = false;
  /// Frames that said that it has trained all it had, and leases of more that answered them. Where
  /// it misbehaves, it may have said so again before such an answer comes.
  unsigned dones_ = 0, leases_ = 0;
  bool done() const { return dones_ > leases_; }
};

}  // namespace duplex::fuzz
