#include "net/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

namespace duplex::net {
namespace {

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string errno_text(int error) {
  char buffer[128] = "";
  // The GNU form: returns the text, in `buffer` or not.
  return strerror_r(error, buffer, sizeof buffer);
}

/// Milliseconds for poll until the deadline, rounded up so that it never spins.
int poll_ms(Deadline deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<long long>(left, 0, INT_MAX));
}

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Addresses resolve(const Address& address, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const std::string port = std::to_string(address.port);
  const int error = getaddrinfo(address.host.empty() ? nullptr : address.host.c_str(), port.c_str(),
                                &hints, &list);
  if (error != 0)
    throw Error("host name '" + address.host + "' cannot be resolved: " + gai_strerror(error));
  return Addresses(list);
}

std::string text_of(const sockaddr_storage& address) {
  char host[NI_MAXHOST] = "?";
  char port[NI_MAXSERV] = "?";
  getnameinfo(reinterpret_cast<const sockaddr*>(&address), sizeof address, host, sizeof host, port,
              sizeof port, NI_NUMERICHOST | NI_NUMERICSERV);
  const std::string name = host;
  return (name.find(':') == std::string::npos ? name : "[" + name + "]") + ":" + port;
}

sockaddr_storage local_of(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  return address;
}

bool set_option(int fd, int level, int option, int value) {
  return setsockopt(fd, level, option, &value, sizeof value) == 0;
}

/// Throws Error(Exit::usage) where the kernel does not know or allow the name.
void set_congestion(int fd, const std::string& name) {
  if (name.empty()) return;
  if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(),
                 static_cast<socklen_t>(name.size())) != 0)
    throw Error("congestion control '" + name + "' is not to be had here (" + errno_text(errno) +
                    "): sysctl net.ipv4.tcp_allowed_congestion_control lists what is",
                Exit::usage);
}

/// Bytes that the kernel holds unsent before a write waits. The rest stays in this program's queue,
/// where an earlier layer can still overtake it.
constexpr int unsent_limit = 256 * 1024;

/// A long read is woken for so many bytes at once. Where connections share few processors, waking
/// for every segment costs more than reading it.
constexpr std::size_t many_bytes = 256 * 1024;
/// A read of less is woken for any.
constexpr std::size_t worth_waking = 16 * 1024;
/// How long a read waits for many bytes before it takes what there is.
constexpr std::chrono::milliseconds patience{20};

void prepare(int fd) {
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, unsent_limit);
  // A machine that vanishes without a word is noticed by the kernel too, not by silence alone.
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

}  // namespace

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
      .count();
}

std::string preferred_congestion() {
  const std::string cubic = "cubic";
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return "";
  const bool allowed = setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, cubic.data(),
                                  static_cast<socklen_t>(cubic.size())) == 0;
  ::close(fd);
  return allowed ? cubic : "";
}

Address Address::parse(const std::string& text, std::uint16_t default_port) {
  const auto bad = [&](const char* why) {
    return Error("'" + text + "' is no address (" + why + "); write host, host:port or [ipv6]:port",
                 Exit::usage);
  };
  Address address;
  address.port = default_port;
  std::string port;
  if (!text.empty() && text[0] == '[') {
    const auto end = text.find(']');
    if (end == std::string::npos) throw bad("']' is missing");
    address.host = text.substr(1, end - 1);
    const std::string rest = text.substr(end + 1);
    if (!rest.empty() && rest[0] != ':') throw bad("text after ']'");
    if (!rest.empty()) port = rest.substr(1);
    if (!rest.empty() && port.empty()) throw bad("the port is empty");
  } else {
    const auto colon = text.find(':');
    address.host = text.substr(0, colon);
    if (colon != std::string::npos) {
      port = text.substr(colon + 1);
      if (port.empty()) throw bad("the port is empty");
    }
  }
  if (address.host.empty()) throw bad("the host is empty");
  if (!port.empty()) {
    if (port.size() > 5 || port.find_first_not_of("0123456789") != std::string::npos ||
        std::stoul(port) > 65535)
      throw bad("the port is no number up to 65535");
    address.port = static_cast<std::uint16_t>(std::stoul(port));
  }
  return address;
}

std::string Address::str() const {
  const bool ipv6 = host.find(':') != std::string::npos;
  return (ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

namespace {
std::string message_of(const std::string& call, const std::string& peer, const std::string& phase,
                       const std::string& reason, double seconds) {
  char took[32];
  std::snprintf(took, sizeof took, "%.1f s", seconds);
  return peer + ": " + reason + " while " + phase + " (" + call + ", after " + took + ")";
}
}  // namespace

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
    // A connect to a free port of this machine can meet itself; that is nobody.
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
    if (Clock::now() >= deadline)
      throw NetworkError(call, peer_, phase, "deadline passed", seconds_since(since),
                         Exit::timed_out);
  }
}

void Socket::wake_at(int bytes) {
  if (bytes == wakes_at_) return;
  set_option(fd_, SOL_SOCKET, SO_RCVLOWAT, bytes);
  wakes_at_ = bytes;
}

/// Waits for some of `wanted` bytes: for so many that waking up pays or, if they do not come soon,
/// for any.
void Socket::wait_for_bytes(std::size_t wanted, Clock::time_point since, Deadline deadline,
                            const char* phase) {
  int room = 0;
  socklen_t size = sizeof room;
  if (wanted >= worth_waking && getsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &room, &size) == 0) {
    // What the kernel has no room for would never come.
    wake_at(std::max(1, std::min(static_cast<int>(std::min(wanted, many_bytes)), room / 4)));
    pollfd many{fd_, POLLIN, 0};
    if (::poll(&many, 1, poll_ms(std::min(deadline, Clock::now() + patience))) > 0) return;
  }
  wake_at(1);
  wait_for(POLLIN, since, deadline, "recv", phase);
}

void Socket::read_exact(void* to, std::size_t size, Deadline deadline, const char* phase) {
  const auto start = Clock::now();
  auto* at = static_cast<char*>(to);
  while (size > 0) {
    const ssize_t got = ::recv(fd_, at, size, 0);
    if (got > 0) {
      at += got;
      size -= static_cast<std::size_t>(got);
    } else if (got == 0) {
      throw NetworkError("recv", peer_, phase, "the connection was closed", seconds_since(start),
                         Exit::peer_lost);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      wait_for_bytes(size, start, deadline, phase);
    } else if (errno != EINTR) {
      throw NetworkError("recv", peer_, phase, errno_text(errno), seconds_since(start),
                         Exit::peer_lost);
    }
  }
}

void Socket::write_all(const void* head, std::size_t head_size, const void* body,
                       std::size_t body_size, Deadline deadline, const char* phase) {
  const auto start = Clock::now();
  iovec parts[2] = {{const_cast<void*>(head), head_size}, {const_cast<void*>(body), body_size}};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  while (parts[0].iov_len + parts[1].iov_len > 0) {
    const ssize_t put = ::sendmsg(fd_, &message, MSG_NOSIGNAL);
    if (put >= 0) {
      auto left = static_cast<std::size_t>(put);
      for (iovec& part : parts) {
        const std::size_t taken = std::min(left, part.iov_len);
        part.iov_base = static_cast<char*>(part.iov_base) + taken;
        part.iov_len -= taken;
        left -= taken;
      }
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      wait_for(POLLOUT, start, deadline, "send", phase);
    } else if (errno != EINTR) {
      throw NetworkError("send", peer_, phase, errno_text(errno), seconds_since(start),
                         Exit::peer_lost);
    }
  }
}

std::ptrdiff_t Socket::peek(void* to, std::size_t size) const {
  const ssize_t got = ::recv(fd_, to, size, MSG_PEEK | MSG_DONTWAIT);
  if (got > 0) return got;
  return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) ? 0 : -1;
}

void Socket::shut_down() {
  if (fd_ >= 0) ::shutdown(fd_, SHUT_RDWR);
}

void Socket::limit_receiving(std::size_t bytes) {
  set_option(fd_, SOL_SOCKET, SO_RCVBUF, static_cast<int>(bytes));
}

void Socket::acknowledge() {
  const int on = 1;
  ::setsockopt(fd_, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof on);
}

void Socket::end_sending() {
  if (fd_ >= 0) ::shutdown(fd_, SHUT_WR);
}

void Socket::drain(Deadline deadline) {
  char nowhere[1 << 14];
  try {
    for (;;) read_exact(nowhere, sizeof nowhere, deadline, "closing");
  } catch (const NetworkError&) {  // Closed, or too late.
  }
}

KernelCounters Socket::counters() const {
  KernelCounters counters;
  tcp_info info{}, later{};
  // The kernel reads the state before it locks the connection for the rest: a FIN may come in
  // between. If it finds the same state once more, no FIN did.
  for (;;) {
    socklen_t size = sizeof info;
    if (getsockopt(fd_, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return counters;
    if (size < offsetof(tcp_info, tcpi_bytes_retrans) + sizeof info.tcpi_bytes_retrans)
      return counters;  // It counts no retransmissions.
    if (getsockopt(fd_, IPPROTO_TCP, TCP_INFO, &later, &size) != 0) return counters;
    if (info.tcpi_state == later.tcpi_state) break;
  }
  counters.known = true;
  // What was acknowledged, not what was sent: a segment that this machine's own queueing discipline
  // dropped is sent again without counting as retransmitted. The acknowledgement of the SYN that
  // opened the connection counts as a byte, on the side that sent it first.
  counters.sent = info.tcpi_bytes_acked - (connected_ && info.tcpi_bytes_acked > 0 ? 1 : 0);
  counters.retransmitted = info.tcpi_bytes_retrans;
  // A FIN that has come counts as a byte there.
  enum { close_wait = 8, last_ack = 9, closing = 11 };  // net/tcp_states.h of the kernel
  const bool fin =
      info.tcpi_state == close_wait || info.tcpi_state == last_ack || info.tcpi_state == closing;
  counters.received = info.tcpi_bytes_received - (fin ? 1 : 0);
  return counters;
}

Listener::~Listener() {
  if (fd_ >= 0) ::close(fd_);
}

Listener Listener::open(const Address& at, const std::string& congestion) {
  const Addresses list = resolve(at, AI_PASSIVE);
  int error = 0;
  for (const addrinfo* info = list.get(); info != nullptr; info = info->ai_next) {
    Listener listener;
    listener.fd_ = ::socket(info->ai_family, info->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
                            info->ai_protocol);
    if (listener.fd_ < 0) {
      error = errno;
      continue;
    }
    set_option(listener.fd_, SOL_SOCKET, SO_REUSEADDR, 1);
    set_congestion(listener.fd_, congestion);
    if (::bind(listener.fd_, info->ai_addr, info->ai_addrlen) == 0 &&
        ::listen(listener.fd_, SOMAXCONN) == 0)
      return listener;
    error = errno;
  }
  std::string hint;
  if (error == EADDRINUSE) hint = ": another program, or another rank, has this port";
  if (error == EADDRNOTAVAIL) hint = ": this is no address of this machine";
  throw Error("cannot listen on " + at.str() + ": " + errno_text(error) + hint);
}

std::uint16_t Listener::port() const {
  const sockaddr_storage address = local_of(fd_);
  if (address.ss_family == AF_INET6)
    return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
  return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

std::string Listener::address() const {
  return text_of(local_of(fd_));
}

bool Listener::loopback() const {
  const sockaddr_storage address = local_of(fd_);
  if (address.ss_family == AF_INET6)
    return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
  return ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr) >> 24 == 127;
}

Socket Listener::accept(std::chrono::milliseconds wait) {
  pollfd wanted{fd_, POLLIN, 0};
  if (::poll(&wanted, 1, static_cast<int>(wait.count())) <= 0) return Socket();
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  const int fd = ::accept4(fd_, reinterpret_cast<sockaddr*>(&peer), &size, SOCK_CLOEXEC);
  if (fd < 0) return Socket();
  prepare(fd);
  return Socket(fd, text_of(peer));
}

}  // namespace duplex::net
