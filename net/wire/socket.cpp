#include "net/wire/socket.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <utility>

#include "net/wire/network_reason.h"
#include "net/wire/socket_setup.h"

namespace duplex::net {
namespace {

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Milliseconds for poll until the deadline, rounded up so that poll never spins.
int poll_ms(Deadline deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<long long>(left, 0, INT_MAX));
}

/// A long read is woken when so many bytes have come. Where connections share few processors,
/// waking for every segment costs more than reading it.
constexpr std::size_t many_bytes = 256 * 1024;
/// A read of fewer bytes is woken for any byte.
constexpr std::size_t worth_waking = 16 * 1024;
/// A body of fewer bytes is copied: that costs no more than two calls and the handling of pages.
constexpr std::size_t worth_borrowing = 32 * 1024;
/// A link that is ready so soon is ready.
constexpr std::chrono::microseconds not_worth_waiting{50};
/// Says how long a read waits for many bytes before it takes what there is.
constexpr std::chrono::milliseconds patience{20};

/// Returns the first `most` bytes of two parts.
std::array<iovec, 2> first_of(std::array<iovec, 2> parts, std::size_t most) {
  for (iovec& part : parts) {
    part.iov_len = std::min(part.iov_len, most);
    most -= part.iov_len;
  }
  return parts;
}

std::string message_of(const std::string& call, const std::string& peer, const std::string& phase,
                       const std::string& reason, double seconds) {
  char took[32];
  std::snprintf(took, sizeof took, "%.1f s", seconds);
  return peer + ": " + reason + " while " + phase + " (" + call + ", after " + took + ")";
}

}  // namespace

/// It is what message_of() has put between the peer and the phase.
std::string bare_reason(const NetworkError& error) {
  const std::string text = error.what();
  const std::size_t begin = error.peer.size() + 2;
  const std::size_t end = text.rfind(" while " + error.phase);
  return end == std::string::npos || end < begin ? text : text.substr(begin, end - begin);
}

NetworkError::NetworkError(const std::string& call, const std::string& peer,
                           const std::string& phase, const std::string& reason, double seconds,
                           Exit code)
    : Error(message_of(call, peer, phase, reason, seconds), code),
      call(call),
      peer(peer),
      phase(phase),
      seconds(seconds) {}

Socket::~Socket() {
  if (fd_ >= 0) ::close(fd_);
}

void Socket::swap(Socket& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(peer_, other.peer_);
  std::swap(connected_, other.connected_);
  std::swap(wakes_at_, other.wakes_at_);
  std::swap(window_, other.window_);
  std::swap(buffer_, other.buffer_);
  std::swap(room_, other.room_);
  std::swap(gaps_, other.gaps_);
  std::swap(corked_, other.corked_);
  std::swap(pipe_, other.pipe_);
  std::swap(later_, other.later_);
  std::swap(link_, other.link_);
}

Socket Socket::connect(const Address& to, const std::string& congestion, Deadline deadline) {
  const auto start = Clock::now();
  const auto failed = [&](int error, Exit code) {
    return NetworkError("connect", to.str(), "connecting", errno_text(error), seconds_since(start),
                        code);
  };
  const Addresses list = resolve(to, 0);
  int error = EADDRNOTAVAIL;
  for (const addrinfo* at = list.get(); at != nullptr; at = at->ai_next) {
    Socket socket(
        ::socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, at->ai_protocol),
        to.str());
    if (!socket) {
      error = errno;
      continue;
    }
    set_congestion(socket.fd_, congestion);
    prepare(socket.fd_);
    if (::connect(socket.fd_, at->ai_addr, at->ai_addrlen) != 0) {
      error = errno;
      if (error != EINPROGRESS) continue;
      socket.wait_for(POLLOUT, start, deadline, "connect", "connecting");
      socklen_t size = sizeof error;
      getsockopt(socket.fd_, SOL_SOCKET, SO_ERROR, &error, &size);
      if (error != 0) continue;
    }
    // A connect to a free port of this machine can meet itself; then nobody listens there.
    sockaddr_storage peer{};
    socklen_t size = sizeof peer;
    if (getpeername(socket.fd_, reinterpret_cast<sockaddr*>(&peer), &size) == 0 &&
        text_of(peer) == socket.local_address()) {
      error = ECONNREFUSED;
      continue;
    }
    socket.connected_ = true;
    return socket;
  }
  throw failed(error, error == ETIMEDOUT ? Exit::timed_out : Exit::peer_lost);
}

std::string Socket::local_address() const {
  return text_of(local_of(fd_));
}

bool Socket::loopback() const {
  return is_loopback(local_of(fd_));
}

std::string Socket::congestion() const {
  char name[32] = "";
  socklen_t size = sizeof name;
  if (getsockopt(fd_, IPPROTO_TCP, TCP_CONGESTION, name, &size) != 0) return "unknown";
  return std::string(name, strnlen(name, size));
}

void Socket::wait_for(short events, Clock::time_point since, Deadline deadline, const char* call,
                      const char* phase) {
  for (;;) {
    pollfd wanted{fd_, events, 0};
    const int ready = ::poll(&wanted, 1, poll_ms(deadline));
    if (ready > 0) return;
    if (ready < 0 && errno != EINTR)
      throw NetworkError("poll", peer_, phase, errno_text(errno), seconds_since(since),
                         Exit::failed);
    if (Clock::now() < deadline) continue;
    if (events == POLLOUT && later_) deadline = later_();
    if (Clock::now() >= deadline)
      throw NetworkError(call, peer_, phase, "deadline passed", seconds_since(since),
                         Exit::timed_out);
  }
}

/// Waits for some of `wanted` bytes: for so many that waking up pays or, if they do not come soon,
/// for any.
void Socket::wait_for_bytes(std::size_t wanted, Clock::time_point since, Deadline deadline,
                            const char* phase) {
  const auto wake_at = [this](int bytes) {
    if (bytes == wakes_at_) return;
    wakes_at_ = bytes;
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof bytes);
  };
  int room = 0;
  socklen_t size = sizeof room;
  if (wanted >= worth_waking && getsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &room, &size) == 0) {
    // Bytes that the kernel has no room for would never come.
    if (window_ > 0) room = std::min(room, 2 * window_);
    wake_at(std::max(1, std::min(static_cast<int>(std::min(wanted, many_bytes)), room / 4)));
    pollfd many{fd_, POLLIN, 0};
    if (::poll(&many, 1, poll_ms(std::min(deadline, Clock::now() + patience))) > 0) return;
  }
  wake_at(1);
  wait_for(POLLIN, since, deadline, "recv", phase);
}

/// Waits until bytes may pass the link, or the connection has ended, which the next call on it then
/// tells. Returns whether it had to wait, which puts `deadline` off.
bool Socket::wait_for_link(const TokenBucket& link, Deadline& deadline) const {
  const Clock::time_point start = Clock::now();
  for (auto now = start;; now = Clock::now()) {
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(link.ready() - now);
    if (left < not_worth_waiting) {
      deadline += now - start;
      return now != start || left.count() > 0;
    }
    const timespec time{left.count() / 1'000'000'000, left.count() % 1'000'000'000};
    pollfd end{fd_, 0, 0};
    if (::ppoll(&end, 1, &time, nullptr) > 0) return true;
  }
}

void Socket::read_exact(void* to, std::size_t size, Deadline deadline, const char* phase) {
  const auto start = Clock::now();
  auto* at = static_cast<char*>(to);
  while (size > 0) {
    const bool waited = link_ && wait_for_link(link_->in, deadline);
    const std::size_t most = link_ ? std::min(size, link_->in.most()) : size;
    const ssize_t got = ::recv(fd_, at, most, 0);
    if (got > 0) {
      if (link_) link_->in.take(static_cast<std::size_t>(got), waited);
      at += got;
      size -= static_cast<std::size_t>(got);
    } else if (got == 0) {
      throw NetworkError("recv", peer_, phase, "the connection was closed", seconds_since(start),
                         Exit::peer_lost);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      wait_for_bytes(most, start, deadline, phase);
    } else if (errno != EINTR) {
      throw NetworkError("recv", peer_, phase, errno_text(errno), seconds_since(start),
                         Exit::peer_lost);
    }
  }
}

void Socket::fail_to_send(Clock::time_point since, const char* phase) const {
  throw NetworkError("send", peer_, phase, errno_text(errno), seconds_since(since),
                     Exit::peer_lost);
}

void Socket::write_parts(Parts parts, int flags, Deadline deadline, const char* phase) {
  const auto start = Clock::now();
  msghdr message{};
  message.msg_iovlen = parts.size();
  std::size_t left = parts[0].iov_len + parts[1].iov_len;
  while (left > 0) {
    const bool waited = link_ && wait_for_link(link_->out, deadline);
    Parts now = first_of(parts, link_ ? link_->out.most() : left);
    message.msg_iov = now.data();
    const ssize_t put = ::sendmsg(fd_, &message, flags | MSG_NOSIGNAL);
    if (put >= 0) {
      auto gone = static_cast<std::size_t>(put);
      if (link_) link_->out.take(gone, waited);
      left -= gone;
      for (iovec& part : parts) {
        const std::size_t taken = std::min(gone, part.iov_len);
        part = {static_cast<char*>(part.iov_base) + taken, part.iov_len - taken};
        gone -= taken;
      }
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      wait_for(POLLOUT, start, deadline, "send", phase);
    } else if (errno != EINTR) {
      fail_to_send(start, phase);
    }
  }
}

void Socket::write_all(const void* head, std::size_t head_size, const void* body,
                       std::size_t body_size, Deadline deadline, const char* phase) {
  write_parts({{{const_cast<void*>(head), head_size}, {const_cast<void*>(body), body_size}}}, 0,
              deadline, phase);
}

void Socket::write_borrowed(const void* head, std::size_t head_size, const void* body,
                            std::size_t body_size, Deadline deadline, const char* phase) {
  std::size_t borrowed = body_size < worth_borrowing ? 0 : pipe_.splice_in(body, body_size);
  if (borrowed == 0) return write_all(head, head_size, body, body_size, deadline, phase);
  const auto start = Clock::now();
  write_parts({{{const_cast<void*>(head), head_size}, {}}}, MSG_MORE, deadline, phase);
  const auto* at = static_cast<const char*>(body);
  for (;;) {
    for (std::size_t passed = 0; passed < borrowed;) {
      const bool waited = link_ && wait_for_link(link_->out, deadline);
      const std::size_t left = borrowed - passed;
      const ssize_t put = pipe_.splice_out(fd_, link_ ? std::min(left, link_->out.most()) : left,
                                           borrowed < body_size);
      if (put > 0) {
        if (link_) link_->out.take(static_cast<std::size_t>(put), waited);
        passed += static_cast<std::size_t>(put);
      } else if (put == 0 || errno == EINVAL) {  // This kind of socket takes no splice.
        pipe_.give_up();
        return write_all(at + passed, body_size - passed, nullptr, 0, deadline, phase);
      } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        wait_for(POLLOUT, start, deadline, "send", phase);
      } else if (errno != EINTR) {
        fail_to_send(start, phase);
      }
    }
    at += borrowed;
    body_size -= borrowed;
    if (body_size == 0) return;
    borrowed = pipe_.splice_in(at, body_size);
    if (borrowed == 0) return write_all(at, body_size, nullptr, 0, deadline, phase);
  }
}

std::ptrdiff_t Socket::peek(void* to, std::size_t size) const {
  const ssize_t got = ::recv(fd_, to, size, MSG_PEEK | MSG_DONTWAIT);
  if (got > 0) return got;
  return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) ? 0 : -1;
}

bool Socket::ended() const {
  pollfd wanted{fd_, POLLRDHUP, 0};
  return ::poll(&wanted, 1, 0) > 0 && (wanted.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

void Socket::cork(bool on) {
  if (on == corked_ || (on && !takes_more_behind_a_segment(fd_))) return;
  corked_ = set_option(fd_, IPPROTO_TCP, TCP_CORK, on ? 1 : 0) && on;
}

void Socket::shut_down() {
  if (fd_ >= 0) ::shutdown(fd_, SHUT_RDWR);
}

void Socket::limit_receiving(std::size_t bytes) {
  // Ask for more memory than the window, since bytes that do not fit are dropped and have to come
  // again: the kernel doubles the size asked for, and segments take up to twice their bytes of it.
  window_ = static_cast<int>(bytes);
  if (2 * window_ > buffer_) {
    set_option(fd_, SOL_SOCKET, SO_RCVBUF, buffer_ = 2 * window_);
    socklen_t size = sizeof room_;
    if (getsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &room_, &size) != 0) room_ = 0;
  }
  // Without the clamp the window would stay what it could be when the connection began. Also, a
  // kernel from 6.6 on finds out how much memory segments take, and then computes the window anew
  // from the buffer, with another result for every connection.
  set_option(fd_, IPPROTO_TCP, TCP_WINDOW_CLAMP, window_);
}

void Socket::acknowledge() {
  const int on = 1;
  ::setsockopt(fd_, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof on);
}

void Socket::keep_pace(std::uint64_t pace) {
  const unsigned long most = pace > 0 ? pace : ~0UL;
  ::setsockopt(fd_, SOL_SOCKET, SO_MAX_PACING_RATE, &most, sizeof most);
}

void Socket::end_sending() {
  if (fd_ >= 0) ::shutdown(fd_, SHUT_WR);
}

void Socket::drain(Deadline deadline) {
  char nowhere[1 << 14];
  try {
    for (;;) read_exact(nowhere, sizeof nowhere, deadline, "closing");
  } catch (const NetworkError&) {  // The peer has closed, or it is too late.
  }
}

}  // namespace duplex::net
