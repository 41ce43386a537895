#include "net/wire/socket_setup.h"

#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "core/error.h"

namespace duplex::net {
namespace {

/// Bytes that the kernel holds unsent before a write waits. The rest stays in this program's queue,
/// where an earlier layer can still overtake it. It is more than a segment, of which loopback's of
/// 65,483 bytes are the largest: the kernel keeps back an unfinished segment of borrowed memory
/// until more comes, and with a lower limit it would take no more.
constexpr int unsent_limit = 64 * 1024;

/// Longest pause between two retransmissions of a segment, the least that the kernel allows.
constexpr int longest_retry_ms = 1000;
/// A day.
constexpr int never_ms = 24 * 3600 * 1000;
/// TCP_RTO_MAX_MS, which older headers do not have.
constexpr int tcp_rto_max_ms = 44;

}  // namespace

bool takes_more_behind_a_segment(int fd) {
  int segment = 0;
  socklen_t size = sizeof segment;
  // The kernel wakes a writer when half of its limit is unsent.
  return getsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &segment, &size) == 0 &&
         segment <= unsent_limit / 4;
}

std::string errno_text(int error) {
  char buffer[128] = "";
  // The GNU form returns the text, which may lie in `buffer` or elsewhere.
  return strerror_r(error, buffer, sizeof buffer);
}

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
    throw UnknownHost("host name '" + address.host +
                      "' cannot be resolved: " + gai_strerror(error));
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

void set_congestion(int fd, const std::string& name) {
  if (name.empty()) return;
  if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(),
                 static_cast<socklen_t>(name.size())) != 0)
    throw Error("cannot use congestion control '" + name + "': " + errno_text(errno) +
                    "; sysctl net.ipv4.tcp_allowed_congestion_control lists what can be used",
                Exit::usage);
}

void prepare(int fd) {
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, unsent_limit);
  // The kernel, too, shall notice a machine that vanishes without a word, not silence alone.
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  // A way that was cut for a while is tried again every second, not after pauses that double each
  // time, which would outlast a deadline. The kernel (from 6.15 on) would then give the connection
  // up after a quarter of a minute; the ranks' own deadlines say when.
  if (set_option(fd, IPPROTO_TCP, tcp_rto_max_ms, longest_retry_ms))
    set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, never_ms);
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

bool is_loopback(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET6)
    return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
  return ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr) >> 24 == 127;
}

bool forgets_pace() {
  std::ifstream file("/proc/sys/net/ipv4/tcp_slow_start_after_idle");
  int value = 0;
  return file >> value && value != 0;
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

}  // namespace duplex::net
