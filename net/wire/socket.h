// TCP sockets with deadlines. Whatever goes wrong is thrown as NetworkError, which names the call,
// the peer, what was being done and for how long.
#pragma once
#include <sys/uio.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "core/error.h"
#include "net/wire/address.h"
#include "net/wire/zero_copy_pipe.h"

namespace duplex::net {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;

class NetworkError : public Error {
 public:
  NetworkError(const std::string& call, const std::string& peer, const std::string& phase,
               const std::string& reason, double seconds, Exit code);

  std::string call;   ///< "recv".
  std::string peer;   ///< "rank 2 (10.0.0.3:4711)".
  std::string phase;  ///< "receiving weights".
  double seconds;     ///< From the begin of the call to its failure.
};

/// Bytes of the stream as the kernel counted them, retransmissions left out. The two ends of the
/// connection itself (SYN, FIN) are not counted.
struct KernelCounters {
  bool known = false;      ///< False where the kernel is older than 4.19 and does not count.
  std::uint64_t sent = 0;  ///< And acknowledged by the peer's kernel.
  std::uint64_t received = 0;
  std::uint64_t retransmitted = 0;
};

/// What the kernel knows of how a connection's bytes go out.
struct Flow {
  std::uint64_t acknowledged = 0;      ///< Bytes, since it began.
  std::chrono::microseconds busy{};    ///< How long some were under way or waited to be, likewise.
  std::chrono::microseconds queued{};  ///< Of late: by what the round trip exceeds its shortest.
};

/// A connected TCP socket. Movable; closed when it goes. Reading and writing may run in two threads
/// at once; shut_down may be called from any thread and makes both fail at once.
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

  /// `congestion`: TCP_CONGESTION; empty leaves the system's. Throws NetworkError.
  static Socket connect(const Address& to, const std::string& congestion, Deadline deadline);

  explicit operator bool() const { return fd_ >= 0; }
  const std::string& peer() const { return peer_; }
  void name_peer(std::string peer) { peer_ = std::move(peer); }
  std::string local_address() const;
  bool loopback() const;           ///< It goes over a loopback address.
  std::string congestion() const;  ///< The control in force, "cubic".

  /// Fills `size` bytes or throws: Exit::peer_lost if the connection ends first, Exit::timed_out at
  /// the deadline, which is one for the whole call. After a failure the stream's position is
  /// unknown and the socket of no more use. `phase`: for the message.
  void read_exact(void* to, std::size_t size, Deadline deadline, const char* phase);
  /// Writes both parts or throws likewise.
  void write_all(const void* head, std::size_t head_size, const void* body, std::size_t body_size,
                 Deadline deadline, const char* phase);
  /// Likewise, but the body is not copied if it is long and the system can do without: it must not
  /// change until the peer has read it, which only an answer of the peer's tells. Its memory must
  /// never be used for anything else after a failure (core/mapped_memory.h). Under WithoutSigpipe.
  void write_borrowed(const void* head, std::size_t head_size, const void* body,
                      std::size_t body_size, Deadline deadline, const char* phase);

  /// Copies up to `size` bytes that have come and not been read, without taking them or waiting.
  /// -1: the connection has ended.
  std::ptrdiff_t peek(void* to, std::size_t size) const;

  /// About so many bytes at most are under way to this side, or lie here unread; the kernel would
  /// find a number by itself. It may allow less (net.core.rmem_max), and gives more in time unless
  /// told again. The reader's.
  void limit_receiving(std::size_t bytes);

  /// What it comes to: no more than the kernel has room for. 0: without limit.
  std::size_t limit() const { return static_cast<std::size_t>(std::min(window_, room_ / 2)); }

  /// Segments that have come behind others that had not, since it was last asked: those were
  /// dropped, or overtaken. 0 where the kernel (older than 5.4) does not count them. The reader's.
  std::uint32_t behind_gaps();

  /// While on, an unfinished segment waits in the kernel for more to be written, 0.2 s at most;
  /// off: it leaves. Does nothing where segments are as large as loopback's. The writer's.
  void cork(bool on);
  /// Has the kernel acknowledge what was read now, not when it sees fit (up to 200 ms later).
  void acknowledge();
  /// None: the kernel (older than 4.10) does not know.
  std::optional<Flow> flow() const;
  /// Has the kernel send no more bytes a second; 0: as many as it can.
  void keep_pace(std::uint64_t pace);
  void end_sending();  ///< The peer reads an end after what was written.
  /// Takes what still comes for nothing, until the peer has closed too or the deadline. (A
  /// connection closed with something unread is reset, and the last words written may be lost with
  /// it.)
  void drain(Deadline deadline);
  void shut_down();
  KernelCounters counters() const;

 private:
  void swap(Socket& other) noexcept;
  void wait_for(short events, Clock::time_point since, Deadline deadline, const char* call,
                const char* phase);
  void wait_for_bytes(std::size_t wanted, Clock::time_point since, Deadline deadline,
                      const char* phase);
  void wake_at(int bytes);
  void write_parts(iovec* parts, std::size_t count, int flags, Deadline deadline,
                   const char* phase);
  [[noreturn]] void fail_to_send(Clock::time_point since, const char* phase) const;

  int fd_ = -1;
  std::string peer_;
  bool connected_ = false;  ///< This side opened the connection.
  int window_ = 0;          ///< limit_receiving()'s bytes; 0: without limit.
  int buffer_ = 0;          ///< What the kernel was asked to have room for,
  int room_ = 0;            ///< and has: memory.
  std::uint32_t gaps_ = 0;  ///< What behind_gaps() has told.
  int wakes_at_ = 1;        ///< Bytes that must have come before waiting for some ends.
  bool corked_ = false;     ///< The writer's.
  ZeroCopyPipe lending_;    ///< The writer's.
};

}  // namespace duplex::net
