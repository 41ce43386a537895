// A connection between two ranks while the run goes on: one thread sends what is queued, another
// receives.
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
#include "net/wire/frame_stream.h"

namespace duplex::net {

/// The memory that the values of a frame of weights or gradient go to; commit() hands it back when
/// all of them are there.
struct Reservation {
  float* to = nullptr;    ///< Null when the run is over.
  std::size_t count = 0;  ///< Values that the payload is of.
  std::size_t chunk = 0;  ///< Chunk::index.
  int worker = -1;        ///< Number of the worker whose gradient it is; -1 for weights.
  /// A frame of factors has a piece and a step, and `chunk` is then the number of the layer.
  std::optional<std::uint32_t> piece = std::nullopt;
  std::uint64_t step = 0;
  bool state = false;  ///< It is of an optimiser's state, not of weights.
  /// A map has its route in `chunk`, and `step` counts micro-batches.
  enum class Map { none, values, gradient } map = Map::none;
};

/// A notice is a frame that carries neither weights nor a gradient.
struct Notice {
  FrameKind kind = FrameKind::heartbeat;
  std::uint64_t value = 0;  ///< Bytes of a `window`, bytes a second of a `pace`; of a heartbeat
                            ///< how far the peer has got (Progress::count); steps of a `checkpoint`
                            ///< or `snapshot`, and of the checkpoint of a `state`; of a `lease` the
                            ///< first, of a `done` all of the worker's.
  std::uint32_t number = 0;  ///< The signal of a `checkpoint` or `snapshot`; the number of a part
                             ///< of `state`; the worker of a `lease`.
  std::uint32_t count = 0;   ///< Steps of a `lease`.
  std::string text;          ///< The whole text of a `report`; the bytes of a part of `state`.
};

/// A connection calls its owner through this interface, from its two threads.
class ConnectionHandler {
 public:
  virtual ~ConnectionHandler() = default;

  /// Returns where to put the payload of this header, the next `header.length` bytes. Throws
  /// ProtocolError if such a frame may not come now; nothing of the payload has been read then.
  virtual Reservation reserve(int peer, const FrameHeader& header) = 0;
  virtual void commit(const Reservation& reservation) = 0;
  /// Copies the values of a frame that was queued without them, just before the frame leaves.
  virtual void copy_payload(int peer, const Outgoing& frame, float* to) = 0;
  /// A frame of weights, gradient or state has been written. This program no longer reads its
  /// payload, but the kernel still does if it was borrowed.
  virtual void sent(const Outgoing& frame) = 0;
  /// A notice has come: a report, a goodbye (nothing more comes from the peer), a turn that is
  /// asked for or given back, and so on. Throws ProtocolError if it may not come now.
  virtual void notice(int peer, Notice notice) = 0;
  /// Tells what this connection wants done with its turn to send weights (take_turns,
  /// grant_weights).
  virtual void weights_turn(int peer, SendOrder::TurnRequest what) = 0;
  /// Returns the number that heartbeats tell (Progress::count), and when the peer got on last.
  virtual std::uint64_t progress() const { return 0; }
  virtual Deadline progressed(int /*peer*/) const { return {}; }
  /// The connection has failed and is of no more use. Whoever notices it calls this, so it may be
  /// called more than once, and after the peer's goodbye, too.
  virtual void failed(int peer, std::exception_ptr cause) = 0;
};

class Connection {
 public:
  /// The most bytes of a report, and of one frame of it.
  static constexpr std::uint64_t report_limit = std::uint64_t{1} << 28;
  static constexpr std::uint64_t report_part = std::uint64_t{1} << 20;
  /// The most bytes of a frame of `state`. Gradients and weights wait for such a frame that has
  /// begun, so it is short.
  static constexpr std::size_t state_part = std::size_t{64} << 10;

  /// Adds the handshake's frames to the ledger. A frame must get through, and the next one must
  /// come, within `timeout`; the sending thread sends a `heartbeat` when it has had nothing to send
  /// for a quarter of it.
  Connection(Link link, ConnectionHandler& owner, Ledger& ledger,
             std::chrono::milliseconds timeout);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Bounds what the peer may have under way to this side by `window`, if that has a bound. The
  /// window must live until stop(). The receiving thread calls `changed` when it has changed
  /// the window (ReceiveWindow::look). Call it before start().
  void keep_to(ReceiveWindow& window, std::function<void()> changed);

  /// Makes gradients wait for the peer's `grant` (with `gradients`), and weights for
  /// grant_weights() (unless `transfer` is 0). `transfer` is the number of frames in one transfer
  /// of weights. Frames of other kinds do not wait. Call it before start().
  void take_turns(bool gradients, std::size_t transfer);

  /// Weights that come are put into their place when all of a frame is there and is the peer's, so
  /// that a connection which fails leaves those that were there before. Call it before start().
  void take_whole_weights() { whole_weights_ = true; }

  void start();
  /// Ends both threads at once, and joins them.
  void stop();
  /// After stop(), where nobody asks for its counters any more: closes the connection, and frees
  /// the memory of payloads.
  void release();
  int peer() const { return link_.rank; }
  const std::string& peer_name() const { return link_.peer; }
  std::string congestion() const { return link_.stream.socket().congestion(); }
  bool loopback() const { return loopback_; }

  /// Queues a frame of weights, gradient, factors or a map. `values` are borrowed
  /// (Socket::write_borrowed): they must not change until the peer has read them, which the peer's
  /// answer tells. If it is null, the connection asks its owner for the values when the frame
  /// leaves. The frame with the lowest `priority` of its round goes next (SendOrder); a frame that
  /// has begun is not interrupted.
  void send(FrameKind kind, const Chunk& chunk, std::uint64_t step, const float* values,
            std::uint64_t priority, Coding coding = Coding::float32);
  /// Sends values that are coded already, in `size` bytes, which are borrowed.
  void send_coded(FrameKind kind, const Chunk& chunk, std::uint64_t step, const std::uint8_t* coded,
                  std::size_t size, std::uint64_t priority, Coding coding);
  void grant();  ///< Tells the peer that it is its turn to send gradients.
  void grant_weights() { queue_.grant_weights(); }  ///< This side may send weights now.
  /// Another connection should send weights first.
  void want_weights_turn() { queue_.want_weights_turn(); }
  /// Sends at most so many bytes a second over this connection; 0: as many as it can. Does nothing
  /// over loopback, where there is no link to share, and where a LinkRate shares it out.
  void keep_pace(std::uint64_t pace);
  std::optional<Flow> flow() const { return link_.stream.socket().flow(); }
  /// Sends a frame of a kind that has no payload, ahead of weights and gradients. PROTOCOL.md says
  /// what the kind puts into the header's fields. The connection has failed where too many such
  /// frames wait (SendQueue::most_urgent).
  void tell(FrameKind kind, std::uint64_t step, std::uint32_t parameter = 0,
            std::uint32_t chunk = 0);
  /// Queues a frame of `state`, which brings its payload along. It leaves while neither weights nor
  /// gradients wait.
  void send_state(Outgoing frame) { queue_.background(std::move(frame)); }
  /// Tells the peer, behind all weights and gradients, that no gradient will follow, unless the
  /// peer leases batches to this side; `steps`: as PROTOCOL.md says.
  void done(std::uint64_t steps);
  /// Sends the report, unless it is empty, and a goodbye behind everything that is queued and will
  /// be; then the sending thread ends.
  void part(const std::string& report);
  /// Tells the peer the reason ahead of everything that is queued; then the sending thread ends.
  void abort(const AbortReason& reason);

  /// Ends the connection and both threads, without waiting for them.
  void drop();

  /// Waits until nothing is queued and nothing is on its way out. Returns false if the deadline
  /// comes first.
  bool wait_until_idle(Deadline deadline) { return queue_.wait_until_idle(deadline); }
  /// Waits until the sending thread has ended. Returns false if the deadline comes first. Throws
  /// NetworkError if the connection broke before this side's goodbye was out.
  bool wait_until_sent(Deadline deadline);
  /// Waits until both threads have ended; after an abort, that is when the peer has read it and
  /// closed. Returns false if the deadline comes first.
  bool wait_until_over(Deadline deadline);
  /// Throws Error if ledger and kernel disagree on the bytes of this connection, and NetworkError
  /// if the peer has gone before it had this side's goodbye. Call it after both goodbyes; until the
  /// deadline it waits for the last of them to leave the kernel.
  ConnectionBytes check_counters(Deadline deadline) const;

 private:
  void send_urgent(Outgoing frame);
  void send_loop();
  void send_data(const Outgoing& frame);
  const void* payload_of(const Outgoing& frame, FrameHeader& header);
  void send_notice(const Outgoing& frame);
  void receive_loop();
  void receive_data(const FrameHeader& header);
  bool receive_notice(const FrameHeader& header);
  void keep_window();
  void act_on(const FrameHeader& header, const std::vector<std::uint8_t>& payload);
  /// `count`: the values of weights or a gradient.
  void record(const FrameHeader& header, bool sent, std::int64_t queued, std::int64_t first,
              std::size_t count = 0);

  Link link_;
  ConnectionHandler& owner_;
  std::chrono::milliseconds timeout_;
  const bool loopback_;
  const Protection protection_;
  /// The peer may begin later than this side, since it still waits for a rank that it will name if
  /// that one does not come: it has until then for its first frame.
  Deadline first_word_;
  std::atomic<bool> heard_{false};  ///< That frame has come.
  Ledger::Lane& sent_;
  Ledger::Lane& received_;

  bool whole_weights_ = false;  ///< By take_whole_weights().
  ReceiveWindow* window_ = nullptr;
  std::function<void()> window_changed_;
  std::atomic<std::uint64_t> pace_{0};  ///< Bytes a second, by keep_pace(); 0: no limit.

  SendQueue queue_;
  std::string report_;             ///< The peer's report so far; the receiving thread uses it.
  std::uint64_t report_left_ = 0;  ///< Bytes of it that are still to come; likewise.
  std::vector<float> filled_;  ///< Values of a frame queued without; the sending thread uses it.
  /// Payloads that are not float32, and weights by take_whole_weights(), of the sending and of the
  /// receiving thread.
  std::vector<std::uint8_t> encoded_, coded_;

  std::mutex mutex_;  ///< Guards all below but the threads; any thread takes it, and holds no other
                      ///< lock.
  std::condition_variable changed_;
  bool sending_ = false, receiving_ = false;
  bool parted_ = false;        ///< The peer's goodbye has ended the receiving thread.
  std::exception_ptr broken_;  ///< What ended the sending thread, if the network did.
  std::thread sender_, receiver_;
};

}  // namespace duplex::net
