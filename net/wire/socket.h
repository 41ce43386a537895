// TCP sockets with deadlines. A failure of the network is thrown as NetworkError, which names the
// call, the peer, what was being done and for how long; a name or a congestion control that does
// not exist is thrown as Error.
#pragma once
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/clock.h"
#include "core/error.h"
#include "net/wire/address.h"
#include "net/wire/link_rate.h"
#include "net/wire/zero_copy_pipe.h"

namespace duplex::net {

class NetworkError : public Error {
 public:
  NetworkError(const std::string& call, const std::string& peer, const std::string& phase,
               const std::string& reason, double seconds, Exit code);

  std::string call;   ///< "recv".
  std::string peer;   ///< "rank 2 (10.0.0.3:4711)".
  std::string phase;  ///< "receiving weights".
  double seconds;     ///< From the beginning of the call to its failure.
};

/// Bytes of the stream as the kernel counted them, without retransmissions. The SYN and the FIN of
/// the connection are not counted.
struct KernelCounters {
  bool known = false;      ///< False if the kernel is older than 4.19 and does not count.
  std::uint64_t sent = 0;  ///< Sent, and acknowledged by the peer's kernel.
  std::uint64_t received = 0;
  std::uint64_t retransmitted = 0;
  bool pending = false;  ///< Bytes wait to be acknowledged.
  bool broken = false;   ///< The connection was reset or has timed out.
};

/// The kernel's figures on how a connection's bytes go out (TCP_INFO).
struct Flow {
  std::uint64_t acknowledged = 0;      ///< Bytes since the connection began.
  std::chrono::microseconds busy{};    ///< Time with bytes under way or waiting, since then.
  std::chrono::microseconds queued{};  ///< The smoothed round trip less the shortest.
};

/// A connected TCP socket; movable, and closed when it is destroyed. Reading and writing may run in
/// two threads at once; any thread may call shut_down(), which makes both fail at once.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd, std::string peer) : fd_(fd), peer_(std::move(peer)) {}
  Socket(Socket&& other) noexcept { swap(other); }
  Socket& operator=(Socket&& other) noexcept {
    Socket(std::move(other)).swap(*this);
    return *this;
  }
  ~Socket();

  /// `congestion`: TCP_CONGESTION; empty: the system's. Throws NetworkError,
  /// UnknownHost, and Error if the congestion control is not known here.
  static Socket connect(const Address& to, const std::string& congestion, Deadline deadline);

  explicit operator bool() const { return fd_ >= 0; }
  const std::string& peer() const { return peer_; }
  void name_peer(std::string peer) { peer_ = std::move(peer); }
  std::string local_address() const;
  bool loopback() const;           ///< Whether it goes over a loopback address.
  std::string congestion() const;  ///< The congestion control in force, such as "cubic".

  /// Fills `size` bytes or throws: Exit::peer_lost if the connection ends first, Exit::timed_out at
  /// the deadline, which is one for the whole call. After a failure the stream's position is
  /// unknown and the socket is of no more use. `phase` is for the message.
  void read_exact(void* to, std::size_t size, Deadline deadline, const char* phase);
  /// Writes both parts or throws, as read_exact() does.
  void write_all(const void* head, std::size_t head_size, const void* body, std::size_t body_size,
                 Deadline deadline, const char* phase);
  /// Writes like write_all(), but does not copy the body if it is long and the system can do
  /// without. Then the body must not change until the peer has read it, which only an answer of the
  /// peer tells. After a failure its memory must never be used for anything else
  /// (core/mapped_memory.h). Call it under WithoutSigpipe.
  void write_borrowed(const void* head, std::size_t head_size, const void* body,
                      std::size_t body_size, Deadline deadline, const char* phase);

  /// A write whose deadline has passed asks it for another one, which counts if it is still to
  /// come.
  void let_writes_wait(std::function<Deadline()> later) { later_ = std::move(later); }

  /// Sends and takes over this link from now on, which other sockets may share. Waits for the link
  /// put deadlines off. None: as fast as it goes.
  void keep_to(std::shared_ptr<LinkRate> link) { link_ = std::move(link); }
  bool bounded() const { return link_ != nullptr; }  ///< Whether it keeps to such a link.

  /// Copies up to `size` bytes that have come and not been read, without taking them or waiting.
  /// Returns -1 if the connection has ended.
  std::ptrdiff_t peek(void* to, std::size_t size) const;
  /// Returns whether the peer has ended its side or the connection broke, whatever is still to be
  /// read.
  bool ended() const;

  /// Lets about so many bytes at most be under way to this side or lie here unread; without it the
  /// kernel finds a number by itself. The kernel may allow less (net.core.rmem_max), and gives more
  /// in time unless told again. The reading thread calls it.
  void limit_receiving(std::size_t bytes);

  /// The limit that this comes to, no more than the kernel has room for; 0: no limit.
  std::size_t limit() const { return static_cast<std::size_t>(std::min(window_, room_ / 2)); }

  /// Segments that have come behind missing ones since the last call; the missing ones were
  /// dropped, or overtaken. 0 if the kernel (older than 5.4) does not count them. The reading
  /// thread calls it.
  std::uint32_t behind_gaps();

  /// While on, an unfinished segment waits in the kernel for more to be written, 0.2 s at most;
  /// turned off, it leaves. Does nothing where segments are as large as loopback's. The writing
  /// thread calls it.
  void cork(bool on);
  /// Makes the kernel acknowledge now what was read, not when it sees fit (up to 200 ms later).
  void acknowledge();
  /// None if the kernel (older than 4.10) does not know.
  std::optional<Flow> flow() const;
  /// Makes the kernel send so many bytes a second at most; 0: as many as it can.
  void keep_pace(std::uint64_t pace);
  void end_sending();  ///< The peer reads an end after what was written.
  /// Reads and drops what still comes, until the peer has closed too or the deadline has passed. (A
  /// connection closed with something unread is reset, and the last words written may be lost with
  /// it.)
  void drain(Deadline deadline);
  void shut_down();
  KernelCounters counters() const;

 private:
  using Parts = std::array<iovec, 2>;

  void swap(Socket& other) noexcept;
  void wait_for(short events, Clock::time_point since, Deadline deadline, const char* call,
                const char* phase);
  void wait_for_bytes(std::size_t wanted, Clock::time_point since, Deadline deadline,
                      const char* phase);
  void write_parts(Parts parts, int flags, Deadline deadline, const char* phase);
  bool wait_for_link(const TokenBucket& link, Deadline& deadline) const;
  [[noreturn]] void fail_to_send(Clock::time_point since, const char* phase) const;

  int fd_ = -1;
  std::string peer_;
  bool connected_ = false;  ///< This side opened the connection.
  int window_ = 0;          ///< Bytes, by limit_receiving(); 0: no limit.
  int buffer_ = 0;          ///< Bytes of memory that the kernel was asked for.
  int room_ = 0;            ///< Bytes of memory that the kernel gave.
  std::function<Deadline()> later_;
  std::shared_ptr<LinkRate> link_;
  std::uint32_t gaps_ = 0;  ///< Segments that behind_gaps() has told of so far.
  int wakes_at_ = 1;        ///< Bytes that must have come before waiting for some ends.
  bool corked_ = false;     ///< Used by the writing thread.
  ZeroCopyPipe pipe_;       ///< Used by the writing thread.
};

}  // namespace duplex::net
