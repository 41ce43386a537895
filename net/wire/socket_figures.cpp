// The kernel's figures on a connection (TCP_INFO).
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "net/wire/socket.h"

namespace duplex::net {

std::uint32_t Socket::behind_gaps() {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (getsockopt(fd_, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 ||
      size < offsetof(tcp_info, tcpi_rcv_ooopack) + sizeof info.tcpi_rcv_ooopack)
    return 0;
  return info.tcpi_rcv_ooopack - std::exchange(gaps_, info.tcpi_rcv_ooopack);
}

std::optional<Flow> Socket::flow() const {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (getsockopt(fd_, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 ||
      size < offsetof(tcp_info, tcpi_busy_time) + sizeof info.tcpi_busy_time)
    return std::nullopt;
  Flow flow;
  flow.acknowledged = info.tcpi_bytes_acked;
  flow.busy = std::chrono::microseconds(info.tcpi_busy_time);
  flow.queued =
      std::chrono::microseconds(info.tcpi_rtt - std::min(info.tcpi_rtt, info.tcpi_min_rtt));
  return flow;
}

KernelCounters Socket::counters() const {
  KernelCounters counters;
  tcp_info info{}, later{};
  // The kernel reads the state before it locks the connection to read the rest, and a FIN may come
  // in between. If the state is the same once more, no FIN did.
  for (;;) {
    socklen_t size = sizeof info;
    if (getsockopt(fd_, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return counters;
    if (size < offsetof(tcp_info, tcpi_bytes_retrans) + sizeof info.tcpi_bytes_retrans)
      return counters;  // This kernel counts no retransmissions.
    if (getsockopt(fd_, IPPROTO_TCP, TCP_INFO, &later, &size) != 0) return counters;
    if (info.tcpi_state == later.tcpi_state) break;
  }
  counters.known = true;
  // Bytes acknowledged are counted, not bytes sent: a segment that this machine's own queueing
  // discipline dropped is sent again without counting as retransmitted. The acknowledgement of the
  // SYN that opened the connection counts as a byte, on the side that sent it first.
  counters.sent = info.tcpi_bytes_acked - (connected_ && info.tcpi_bytes_acked > 0 ? 1 : 0);
  counters.retransmitted = info.tcpi_bytes_retrans;
  // A FIN that has come counts as a byte received.
  enum { close = 7, close_wait = 8, last_ack = 9, closing = 11 };  // net/tcp_states.h of the kernel
  const bool fin =
      info.tcpi_state == close_wait || info.tcpi_state == last_ack || info.tcpi_state == closing;
  counters.received = info.tcpi_bytes_received - (fin ? 1 : 0);
  counters.pending = info.tcpi_unacked > 0 || info.tcpi_notsent_bytes > 0;
  counters.broken = info.tcpi_state == close;
  return counters;
}

}  // namespace duplex::net
