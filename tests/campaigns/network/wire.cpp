// A cable that duplicates and reorders frames (tests/campaigns/network.sh), since not every kernel
// has netem.
//
// Usage: wire relay ONE OTHER SEED
//          carries the frames of Ethernet between two interfaces until it is ended; then it says
//          how many there were
//        wire plain INTERFACE
//          has the interface send segments as they lie on a cable, with their checksums: two ends
//          of a virtual cable hand each other larger ones without, which no relay could pass on
#include <arpa/inet.h>
#include <linux/ethtool.h>
#include <linux/if.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using Frame = std::vector<std::uint8_t>;

/// One frame in so many comes twice, and one in so many later.
constexpr std::uint32_t one_in = 16;
/// A late frame comes behind so many others at most, or after this time.
constexpr int most_before = 5;
constexpr std::chrono::milliseconds longest_wait{3};

volatile std::sig_atomic_t over = 0;

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error(what + ": " + std::strerror(errno));
}

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15U + 1) {}
  std::uint32_t below(std::uint32_t limit) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<std::uint32_t>(state_ >> 32) % limit;
  }

 private:
  std::uint64_t state_;
};

ifreq request_of(const std::string& interface) {
  ifreq request{};
  interface.copy(request.ifr_name, IFNAMSIZ - 1);
  return request;
}

/// All frames that come to an interface, and a way out of it.
int open_interface(const std::string& name) {
  const int fd = ::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, htons(ETH_P_ALL));
  if (fd < 0) fail("socket");
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(ETH_P_ALL);
  ifreq request = request_of(name);
  if (::ioctl(fd, SIOCGIFINDEX, &request) != 0) fail(name);
  address.sll_ifindex = request.ifr_ifindex;
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) fail(name);
  packet_mreq all{};
  all.mr_ifindex = address.sll_ifindex;
  all.mr_type = PACKET_MR_PROMISC;
  if (::setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all, sizeof all) != 0) fail(name);
  const int room = 4 << 20;
  ::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
  return fd;
}

struct Counts {
  std::uint64_t frames = 0, twice = 0, later = 0, dropped = 0;
};

/// One direction of the cable.
class Direction {
 public:
  Direction(int from, int to, Dice& dice, Counts& counts)
      : from_(from), to_(to), dice_(dice), counts_(counts) {}

  int from() const { return from_; }
  void carry() {
    std::array<std::uint8_t, 1 << 16> bytes;
    for (;;) {
      sockaddr_ll sender{};
      socklen_t size = sizeof sender;
      const ssize_t got = ::recvfrom(from_, bytes.data(), bytes.size(), 0,
                                     reinterpret_cast<sockaddr*>(&sender), &size);
      if (got <= 0) return;
      if (sender.sll_pkttype == PACKET_OUTGOING) continue;  // This program sent it.
      pass(Frame(bytes.begin(), bytes.begin() + got));
    }
  }
  /// Sends what has waited long enough.
  void look(Clock::time_point now) {
    while (!late_.empty() && (late_.front().before <= 0 || late_.front().until <= now)) {
      put(late_.front().frame);
      late_.pop_front();
    }
  }
  bool waits() const { return !late_.empty(); }

 private:
  struct Late {
    Frame frame;
    int before;
    Clock::time_point until;
  };

  void pass(const Frame& frame) {
    ++counts_.frames;
    const Clock::time_point now = Clock::now();
    if (dice_.below(one_in) == 0) {
      ++counts_.later;
      const int before = 1 + static_cast<int>(dice_.below(most_before));
      late_.push_back({frame, before, now + longest_wait});
      return;
    }
    put(frame);
    if (dice_.below(one_in) == 0) {
      ++counts_.twice;
      put(frame);
    }
    for (Late& late : late_) --late.before;
    look(now);
  }
  void put(const Frame& frame) {
    if (::send(to_, frame.data(), frame.size(), 0) < 0) ++counts_.dropped;
  }

  int from_, to_;
  Dice& dice_;
  Counts& counts_;
  std::deque<Late> late_;
};

int relay(const std::string& one, const std::string& other, std::uint64_t seed) {
  const int a = open_interface(one), b = open_interface(other);
  Dice dice(seed);
  Counts counts;
  Direction there(a, b, dice, counts), back(b, a, dice, counts);
  while (over == 0) {
    std::array<pollfd, 2> ends{{{a, POLLIN, 0}, {b, POLLIN, 0}}};
    ::poll(ends.data(), ends.size(), there.waits() || back.waits() ? 1 : 100);
    for (Direction* direction : {&there, &back}) {
      direction->carry();
      direction->look(Clock::now());
    }
  }
  std::printf("%llu frames, %llu twice, %llu later, %llu dropped\n",
              static_cast<unsigned long long>(counts.frames),
              static_cast<unsigned long long>(counts.twice),
              static_cast<unsigned long long>(counts.later),
              static_cast<unsigned long long>(counts.dropped));
  return 0;
}

int plain(const std::string& interface) {
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) fail("socket");
  for (const std::uint32_t command : {ETHTOOL_STXCSUM, ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO}) {
    ethtool_value off{command, 0};
    ifreq request = request_of(interface);
    request.ifr_data = reinterpret_cast<char*>(&off);
    if (::ioctl(fd, SIOCETHTOOL, &request) != 0) fail(interface);
  }
  ::close(fd);
  return 0;
}

int main_of(const std::vector<std::string>& words) {
  if (words.size() == 2 && words[0] == "plain") return plain(words[1]);
  if (words.size() == 4 && words[0] == "relay")
    return relay(words[1], words[2], std::stoull(words[3]));
  std::fputs("usage: wire relay ONE OTHER SEED | wire plain INTERFACE\n", stderr);
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGTERM, [](int) { over = 1; });
  std::signal(SIGINT, [](int) { over = 1; });
  try {
    return main_of({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "wire: %s\n", error.what());
    return 1;
  }
}
