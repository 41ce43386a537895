#include "tools/check/machine/queue.h"

#include <linux/netlink.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cstring>

namespace duplex::tools {
namespace {

struct Request {
  nlmsghdr head;
  tcmsg queue;
};

/// Netlink's parts begin at multiples of four bytes.
std::size_t aligned(std::size_t bytes) {
  return (bytes + NLMSG_ALIGNTO - 1) / NLMSG_ALIGNTO * NLMSG_ALIGNTO;
}

/// Reads a T at an offset; zeros if it does not lie within the bytes.
template <class T>
T part(const char* data, std::size_t bytes, std::size_t at) {
  T value{};
  if (at + sizeof value <= bytes) std::memcpy(&value, data + at, sizeof value);
  return value;
}

/// The text of the attribute TCA_KIND among those in the bytes.
std::string kind_in(const char* data, std::size_t bytes) {
  for (std::size_t at = 0; at + sizeof(rtattr) <= bytes;) {
    const auto attribute = part<rtattr>(data, bytes, at);
    if (attribute.rta_len < sizeof attribute || at + attribute.rta_len > bytes) break;
    if (attribute.rta_type == TCA_KIND) {
      const char* text = data + at + sizeof attribute;
      return std::string(text, strnlen(text, attribute.rta_len - sizeof attribute));
    }
    at += aligned(attribute.rta_len);
  }
  return "";
}

}  // namespace

bool QueueText::take(const void* data, std::size_t bytes) {
  const char* all = static_cast<const char*>(data);
  for (std::size_t at = 0; at + sizeof(nlmsghdr) <= bytes;) {
    const auto head = part<nlmsghdr>(all, bytes, at);
    if (head.nlmsg_type == NLMSG_DONE || head.nlmsg_type == NLMSG_ERROR) return true;
    if (head.nlmsg_len < sizeof head || at + head.nlmsg_len > bytes) return true;
    const std::size_t begin = at + aligned(sizeof head), end = at + head.nlmsg_len;
    const auto queue = part<tcmsg>(all, end, begin);
    const std::size_t attributes = begin + aligned(sizeof queue);
    at += aligned(head.nlmsg_len);
    if (head.nlmsg_type != RTM_NEWQDISC || attributes > end || queue.tcm_ifindex != interface_)
      continue;
    const std::string kind = kind_in(all + attributes, end - attributes);
    if (queue.tcm_parent == TC_H_ROOT) {
      root_ = kind;
    } else if (queue.tcm_parent != TC_H_INGRESS &&
               (" and " + children_ + " and ").find(" and " + kind + " and ") ==
                   std::string::npos) {
      children_ += (children_.empty() ? "" : " and ") + kind;
    }
  }
  return false;
}

std::string QueueText::str() const {
  return root_ == "mq" && !children_.empty() ? root_ + " of " + children_ : root_;
}

std::string queue_of(int interface) {
  QueueText text(interface);
  const int socket = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (socket < 0) return "";
  timeval patience{1, 0};
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  Request request{};
  request.head.nlmsg_len = sizeof request;
  request.head.nlmsg_type = RTM_GETQDISC;
  request.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  request.queue.tcm_family = AF_UNSPEC;
  request.queue.tcm_ifindex = interface;
  if (::send(socket, &request, sizeof request, 0) == static_cast<ssize_t>(sizeof request)) {
    std::array<char, 1 << 15> answer{};
    for (;;) {
      const ssize_t got = ::recv(socket, answer.data(), answer.size(), 0);
      if (got <= 0 || text.take(answer.data(), static_cast<std::size_t>(got))) break;
    }
  }
  ::close(socket);
  return text.str();
}

}  // namespace duplex::tools
