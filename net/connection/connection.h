// One connection between two ranks while the run goes on: a thread that sends what is queued, a
// thread that receives.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "net/connection/connection_bytes.h"
#include "net/connection/receive_window.h"
#include "net/connection/send_queue.h"
#include "net/ledger/ledger.h"
#include "net/rendezvous/mesh.h"
#include "net/topology/shard_map.h"
#include "net/wire/frame.h"
#include "net/wire/socket.h"

namespace duplex::net {

/// Where the payload of a frame of weights or gradient goes; commit() takes it back when all of it
/// is there.
struct Reservation {
  float* to = nullptr;    ///< Null: the run is over.
  std::size_t chunk = 0;  ///< Chunk::index.
  int worker = -1;        ///< By number, whose gradient it is; -1: these are weights.
};

/// A frame that carries no weights and no gradient.
struct Notice {
  FrameKind kind = FrameKind::heartbeat;
  std::uint64_t value = 0;  ///< Of `window` and `pace`.
  std::string text;         ///< Of a `report`, all of it.
};

/// What a connection tells and asks its owner, from its two threads.
class ConnectionOwner {
 public:
  virtual ~ConnectionOwner() = default;

  /// The payload of this header comes next, `header.length` bytes. Throws ProtocolError if such a
  /// frame may not come now: nothing of it has been read then.
  virtual Reservation reserve(int peer, const FrameHeader& header) = 0;
  virtual void commit(const Reservation& reservation) = 0;
  /// Copies the payload of a frame that was queued without one, as it is about to leave.
  virtual void copy_payload(int peer, const Outgoing& frame, float* to) = 0;
  /// A frame of weights or gradient has left: its payload is this program's no more, but still the
  /// kernel's if it was borrowed.
  virtual void sent(const Outgoing& frame) = 0;
  /// A report, a goodbye (nothing more comes from the peer), a turn that is asked for or given
  /// back, ... Throws ProtocolError if it may not come now.
  virtual void notice(int peer, Notice notice) = 0;
  /// What this connection wants of its turn to send weights (take_turns, grant_weights).
  virtual void weights_turn(int peer, SendOrder::Tell what) = 0;
  /// The connection is of no more use. At most once from each thread.
  virtual void failed(int peer, std::exception_ptr cause) = 0;
};

class Connection {
 public:
  /// Bytes of a report, and of one frame of it.
  static constexpr std::uint64_t report_limit = std::uint64_t{1} << 28;
  static constexpr std::uint64_t report_part = std::uint64_t{1} << 20;

  /// Records the handshake's frames. `timeout`: for a frame to get through, and for the next one to
  /// come: the sending thread says `heartbeat` four times as often when there is nothing else to
  /// send.
  Connection(Link link, ConnectionOwner& owner, Ledger& ledger, std::chrono::milliseconds timeout);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// What the peer may have under way to this side, if that has a bound; it must outlive the
  /// connection. `changed` is called by the receiving thread when the window has become another
  /// (ReceiveWindow::look). Before start().
  void keep_to(ReceiveWindow& window, std::function<void()> changed);

  /// Gradients wait for the peer's grant, and weights, if a transfer of them has frames, for the
  /// owner's. Frames of other kinds pass. Before start().
  void take_turns(bool gradients, std::size_t transfer);

  void start();
  /// Ends both threads, at once.
  void stop();
  int peer() const { return link_.rank; }
  const std::string& peer_name() const { return link_.peer; }
  std::string congestion() const { return link_.socket.congestion(); }
  bool loopback() const { return loopback_; }

  /// Queues a frame of weights or gradient; `payload` is borrowed (Socket::write_borrowed): it must
  /// stay as it is until the peer has it, which what comes back tells, or is null: then the owner
  /// is asked for it when the frame leaves. The frame of the lowest `place` of its round goes next
  /// (SendQueue); one that has begun is not interrupted.
  void send(FrameKind kind, const Chunk& chunk, std::uint64_t step, const void* payload,
            std::uint64_t place);
  void grant();  ///< Tells the peer that it is its turn to send gradients.
  void grant_weights() { queue_.grant_weights(); }          ///< It is its turn to send weights.
  void want_weights_turn() { queue_.want_weights_turn(); }  ///< Somebody before it has some.
  /// What this side has found for a window (ReceiveWindow::own).
  void tell_window(std::size_t bytes);
  /// How many bytes a second the peer is to send over each of its connections; 0: as many as it
  /// can.
  void tell_pace(std::uint64_t pace);
  /// So many are what this side sends; over loopback there is no link to share.
  void keep_pace(std::uint64_t pace);
  std::optional<Flow> flow() const { return link_.socket.flow(); }
  /// Behind all weights and gradients: tells the peer that no gradient will follow.
  void done();
  /// Behind everything that is queued and will be: then goodbye, and the sending thread is done.
  void part(const std::string& report);
  /// Ahead of everything: tells the peer why, then the sending thread is done.
  void abort(const AbortReason& reason);

  /// Lets go of the peer, without waiting: both threads end.
  void drop();

  /// Waits until nothing is queued and nothing on its way out. False: not by then.
  bool wait_until_idle(Deadline deadline) { return queue_.wait_until_idle(deadline); }
  /// Waits until the sending thread is done. False: not by then.
  bool wait_until_sent(Deadline deadline);
  /// Waits until both threads are done: after an abort, until the peer has had it and closed.
  bool wait_until_over(Deadline deadline);
  /// Throws Error if ledger and kernel disagree on the bytes of this connection. After both
  /// goodbyes; the deadline is for the last of them to leave the kernel.
  ConnectionBytes check_counters(Deadline deadline) const;

 private:
  void send_loop();
  void send_frame(const Outgoing& frame);
  void receive_loop();
  bool receive_frame();
  void receive_data(const FrameHeader& header);
  void keep_window();
  void act_on(const FrameHeader& header, const std::vector<std::uint8_t>& payload);
  ProtocolError refused(const std::string& why) const;
  void record(const FrameHeader& header, bool sent, std::int64_t queued, std::int64_t first);

  Link link_;
  ConnectionOwner& owner_;
  std::chrono::milliseconds timeout_;
  const bool loopback_;
  Ledger::Lane& sent_;
  Ledger::Lane& received_;

  ReceiveWindow* window_ = nullptr;
  std::function<void()> window_changed_;
  std::atomic<std::uint64_t> pace_{0};  ///< keep_pace()'s.

  SendQueue queue_;
  std::string report_;         ///< What has come of the peer's so far; the receiver's.
  std::vector<float> filled_;  ///< Payload of a frame that was queued without; the sender's.

  std::mutex mutex_;  ///< Guards what follows; any thread takes it, with no other lock.
  std::condition_variable changed_;
  bool sending_ = false, receiving_ = false;
  std::thread sender_, receiver_;
};

}  // namespace duplex::net
