// Queue disciplines, in which packets wait for an interface.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace duplex::tools {

/// The kernel's answer to RTM_GETQDISC (rtnetlink(7)) for one interface in words: "fq_codel"; where
/// the card has several queues "mq of fq_codel", or "mq of fq_codel and pfifo_fast". Bytes that are
/// no such answer count as nothing.
class QueueText {
 public:
  explicit QueueText(int interface) : interface_(interface) {}

  /// Takes a datagram. Returns whether the answer ends with it.
  bool take(const void* data, std::size_t bytes);
  /// Empty if the kernel named none.
  std::string str() const;

 private:
  int interface_;
  std::string root_, children_;
};

/// Asks the kernel. Empty if it does not say.
std::string queue_of(int interface);

}  // namespace duplex::tools
