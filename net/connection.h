// One connection between two ranks while the run goes on: a queue and a thread that sends, a thread
// that receives.
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <queue>
#include <string>
#include <thread>
#include <vector>

#include "net/frame.h"
#include "net/ledger.h"
#include "net/mesh.h"
#include "net/socket.h"

namespace duplex::net {

/// What a connection tells and asks its owner; from its two threads.
class ConnectionOwner {
 public:
  virtual ~ConnectionOwner() = default;

  /// Where the payload of a frame of weights or gradient is to go, `header.length` bytes. Throws
  /// ProtocolError if such a frame may not come now: nothing of it has been read then. Null: the
  /// run is over.
  virtual void* destination(int peer, const FrameHeader& header) = 0;
  /// Fills the payload of a frame that was queued without one, as it is about to leave.
  virtual void fill(int peer, const FrameHeader& header, void* payload) = 0;
  /// The payload is there.
  virtual void received(int peer, const FrameHeader& header) = 0;
  /// A frame of weights or gradient has left: its payload is read no more.
  virtual void sent(int peer, const FrameHeader& header) = 0;
  virtual void reported(int peer, std::string report) = 0;
  /// The peer has pushed its last gradient.
  virtual void done(int peer) = 0;
  /// The peer has said goodbye: nothing more comes from it.
  virtual void parted(int peer) = 0;
  /// The connection is of no more use. At most once from each thread.
  virtual void failed(int peer, std::exception_ptr cause) = 0;
};

class Connection {
 public:
  static constexpr std::uint64_t report_limit = std::uint64_t{1} << 20;  ///< Bytes of a report.

  /// Records the handshake's frames. `timeout`: for a frame to get through, and for the next one to
  /// come: the sending thread says `alive` four times as often when there is nothing else to send.
  Connection(Link link, ConnectionOwner& owner, Ledger& ledger, std::chrono::milliseconds timeout);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// New weights go behind all gradients of the round whose gradients made them, not behind those
  /// of earlier parameters alone: where owners publish together, every one waits for all gradients.
  void gradients_first() { strict_ = true; }

  void start();
  /// Ends both threads, at once.
  void stop();
  int peer() const { return link_.rank; }
  const std::string& peer_name() const { return link_.peer; }
  std::string congestion() const { return link_.socket.congestion(); }

  /// Queues a frame of weights or gradient; `payload` must stay as it is until sent(), or is null:
  /// then the owner is asked for it when the frame leaves. Of the frames in the queue, those of an
  /// earlier round go first, then those of an earlier parameter; a frame that has begun is not
  /// interrupted.
  void send(FrameKind kind, std::uint32_t parameter, std::uint32_t chunk, std::uint64_t step,
            const void* payload, std::uint64_t bytes);
  /// Behind all weights and gradients: tells the peer that no gradient will follow.
  void done();
  /// Behind everything that is queued and will be: then goodbye, and the sending thread is done.
  void part(const std::string& report);
  /// Ahead of everything: tells the peer why, then the sending thread is done.
  void abort(const AbortReason& reason);

  /// Lets go of the peer, without waiting: both threads end.
  void drop();

  /// Waits until the sending thread is done. False: not by then.
  bool wait_until_sent(Deadline deadline);
  /// Waits until both threads are done: after an abort, until the peer has had it and closed.
  bool wait_until_over(Deadline deadline);
  /// Throws Error if ledger and kernel disagree on the bytes of this connection. After both
  /// goodbyes; the deadline is for the last of them to leave the kernel.
  void check_counters(Deadline deadline) const;

 private:
  struct Outgoing {
    FrameHeader header;
    const void* payload = nullptr;
    std::vector<std::uint8_t> own;  ///< Payload of its own, where there is one.
    std::int64_t queued = 0;
    std::uint64_t number = 0;
    bool late = false;  ///< Behind all others of its round.
  };
  static bool after(const Outgoing& a, const Outgoing& b);

  void queue(Outgoing frame);
  void send_loop();
  void send_frame(const Outgoing& frame);
  void receive_loop();
  bool receive_frame();
  bool next_frame(Outgoing& frame);
  void record(const FrameHeader& header, bool sent, std::int64_t queued, std::int64_t first);

  Link link_;
  ConnectionOwner& owner_;
  std::chrono::milliseconds timeout_;
  bool strict_ = false;
  Ledger::Lane& sent_;
  Ledger::Lane& received_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Outgoing> queue_;  ///< A heap by after().
  std::uint64_t queued_ = 0;
  std::vector<float> filled_;  ///< Payload of a frame that was queued without; the sender's.
  bool stop_ = false;
  bool sending_ = false, receiving_ = false;
  std::thread sender_, receiver_;
};

}  // namespace duplex::net
