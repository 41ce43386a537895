// The options and counters of the kernel's TCP that a socket uses: counters of bytes, segments that
// wait to be full, windows, congestion control.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "net/wire/socket.h"
#include "net/wire/socket_setup.h"
#include "tests/net/wire/socket_pair.h"

namespace duplex::net {
namespace {

using std::chrono::milliseconds;

constexpr const char* no_counters =
    "this kernel does not count a connection's bytes (Linux from 4.19 on does), so that the ledger "
    "is not compared with it here";

TEST(Tcp, KernelCountsWhatWasSent) {
  SocketPair pair;
  std::vector<char> some(300000);
  std::thread reader([&] {
    std::vector<char> got(some.size());
    pair.far.read_exact(got.data(), got.size(), SocketPair::in(20000), "testing");
  });
  pair.near.write_all(some.data(), some.size(), nullptr, 0, SocketPair::in(20000), "testing");
  reader.join();
  if (!pair.near.counters().known) GTEST_SKIP() << no_counters;
  // An acknowledgement may take 40 ms.
  const Deadline acknowledged = SocketPair::in(5000);
  while (pair.near.counters().sent < some.size() && Clock::now() < acknowledged)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(pair.near.counters().sent, some.size());
  EXPECT_EQ(pair.far.counters().received, some.size());
  EXPECT_EQ(pair.near.counters().received, 0U);
  // The end of the connection is no byte of it.
  pair.far = Socket();
  char byte = 0;
  EXPECT_THROW(pair.near.read_exact(&byte, 1, SocketPair::in(5000), "testing"), NetworkError);
  EXPECT_EQ(pair.near.counters().received, 0U);
}

TEST(Tcp, CountersHoldWhileThePeerCloses) {
  if (!SocketPair().near.counters().known) GTEST_SKIP() << no_counters;
  for (int i = 0; i < 300; ++i) {
    SocketPair pair;
    char byte = 'x';
    pair.far.write_all(&byte, 1, nullptr, 0, SocketPair::in(5000), "testing");
    pair.near.read_exact(&byte, 1, SocketPair::in(5000), "testing");
    std::thread closing([&] { pair.far = Socket(); });
    for (int look = 0; look < 60; ++look) EXPECT_EQ(pair.near.counters().received, 1U);
    closing.join();
  }
}

TEST(Tcp, KeepsAPaceUntilToldAnother) {
  SocketPair pair;
  std::vector<char> some(4000000);
  const auto seconds_to_send = [&] {
    return seconds_of([&] {
      std::thread reader([&] {
        std::vector<char> got(some.size());
        pair.far.read_exact(got.data(), got.size(), SocketPair::in(20000), "testing");
      });
      pair.near.write_all(some.data(), some.size(), nullptr, 0, SocketPair::in(20000), "testing");
      reader.join();
    });
  };
  const std::optional<Flow> before = pair.near.flow();
  pair.near.keep_pace(8000000);
  const double paced = seconds_to_send();
  const std::optional<Flow> after = pair.near.flow();
  // It takes 0.5 s, less a connection's first ten segments, which are not paced.
  EXPECT_GT(paced, 0.3);
  pair.near.keep_pace(0);
  double free = paced;  // The machine may pause meanwhile.
  for (int i = 0; i < 5; ++i) free = std::min(free, seconds_to_send());
  EXPECT_LT(free, paced / 2);
  if (!before || !after)
    GTEST_SKIP() << "this kernel does not tell for how long a connection was busy (Linux from 4.10 "
                    "on does), so that ranks are not paced here; that a pace is kept was tested";
  EXPECT_NEAR(static_cast<double>(after->acknowledged - before->acknowledged), 4e6, 1e5);
  EXPECT_GT(after->busy - before->busy, milliseconds(300));
  EXPECT_LE(after->busy - before->busy, std::chrono::duration<double>(paced + 0.02));
}

// A packet holds so many pages that it may be full before its segment is; then the kernel keeps it
// back for more. If a write waited for that, each would take a timer's 0.2 s.
TEST(Tcp, AnUnfinishedSegmentDoesNotStopTheWriter) {
  const WithoutSigpipe quiet;
  constexpr std::size_t page = 4096, size = 1 << 20, turns = 3000;
  const std::unique_ptr<void, decltype(&std::free)> memory(std::aligned_alloc(page, size + page),
                                                           &std::free);
  std::memset(memory.get(), 1, size + page);
  SocketPair pair;
  std::thread writer([&] {
    const char* body = static_cast<const char*>(memory.get());
    const Deadline deadline = SocketPair::in(10000);
    try {
      for (std::size_t i = 0; i < turns; ++i)
        pair.near.write_borrowed("head", 4, body + i * 499 % page, size, deadline, "testing");
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
      pair.near.shut_down();
    }
  });
  std::vector<char> got(4 + size);
  try {
    for (std::size_t i = 0; i < turns; ++i)
      pair.far.read_exact(got.data(), got.size(), SocketPair::in(20000), "testing");
  } catch (const NetworkError&) {  // The writer says why.
  }
  writer.join();
}

/// Connects with segments of 1,448 bytes, as over Ethernet; loopback's own have all sizes.
int connect_in_segments(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), segment = 1448;
  ::setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &segment, sizeof segment);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  return fd;
}

/// TCP's timer would send a segment that is held back after 0.2 s. A busy machine may let this
/// process wait as long, so the quickest of several times counts.
TEST(Tcp, CorkKeepsAnUnfinishedSegmentBack) {
  Listener listener = Listener::open({"127.0.0.1", 0});
  Socket near(connect_in_segments(listener.port()), "there");
  Socket far = listener.accept(milliseconds(5000));
  double held = 1, corked = 1, free = 1;
  for (int i = 0; i < 20 && (held > 0.1 || corked > 0.1 || free > 0.1); ++i) {
    char got[2] = {};
    const auto both = [&](const std::function<void()>& before) {
      return seconds_of([&] {
        before();
        far.read_exact(got, sizeof got, SocketPair::in(5000), "testing");
      });
    };
    std::ptrdiff_t early = 0;
    near.cork(true);
    const double waited = seconds_of([&] {
      near.write_all("a", 1, "b", 1, SocketPair::in(5000), "testing");
      std::this_thread::sleep_for(milliseconds(20));
      early = far.peek(got, 1);
    });
    if (waited < 0.1) {
      EXPECT_EQ(early, 0);
    }
    held = std::min(held, waited);
    corked = std::min(corked, both([&] { near.cork(false); }));
    free = std::min(free,
                    both([&] { near.write_all("c", 1, "d", 1, SocketPair::in(5000), "testing"); }));
    EXPECT_EQ(std::string(got, sizeof got), "cd");
  }
  EXPECT_LT(held, 0.1) << "never looked in time";
  EXPECT_LT(corked, 0.1);
  EXPECT_LT(free, 0.1);
}

/// An unfinished segment of loopback is as large as what may be unsent: nothing more would be taken
/// behind it until a timer sends it.
TEST(Tcp, CorkDoesNotStopTheWriterOverLoopback) {
  const WithoutSigpipe quiet;
  constexpr std::size_t most = 300000, turns = 100;
  SocketPair pair;
  std::vector<char> some(most), got(most);
  const auto size = [](std::size_t i) { return most - i * 1999; };
  std::thread reader([&] {
    for (std::size_t i = 0; i < turns; ++i)
      pair.far.read_exact(got.data(), size(i), SocketPair::in(60000), "testing");
  });
  EXPECT_LT(seconds_of([&] {
              pair.near.cork(true);
              for (std::size_t i = 0; i < turns; ++i)
                pair.near.write_borrowed("head", 4, some.data(), size(i) - 4, SocketPair::in(60000),
                                         "testing");
              pair.near.cork(false);
            }),
            2.0);
  reader.join();
}

/// The bytes that the peer lets this side have under way; none: the kernel does not tell (before
/// 5.4).
std::optional<std::size_t> window_of(int fd) {
  constexpr std::size_t place = 228;  // tcpi_snd_wnd, which older headers do not have.
  char info[place + sizeof(std::uint32_t)] = {};
  socklen_t size = sizeof info;
  std::uint32_t window = 0;
  EXPECT_EQ(::getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &size), 0);
  if (size < sizeof info) return std::nullopt;
  std::memcpy(&window, info + place, sizeof window);
  return window;
}

/// Once segments have come, the kernel knows how much memory they take, and would give a larger
/// window. So the limit is set again and again.
TEST(Tcp, LimitOfReceivingHolds) {
  constexpr std::size_t limit = 128 << 10, piece = 1 << 20;
  Listener listener = Listener::open({"127.0.0.1", 0});
  const int fd = connect_in_segments(listener.port());
  Socket near(fd, "there"), far = listener.accept(milliseconds(5000));
  if (!window_of(fd))
    GTEST_SKIP() << "this kernel does not tell what window a peer gives (Linux from 5.4 on does), "
                    "so that a bound cannot be seen from here";
  std::vector<char> some(piece), got(piece);
  std::size_t most = 0;
  for (int i = 0; i < 16; ++i) {
    far.limit_receiving(limit);
    std::thread reader(
        [&] { far.read_exact(got.data(), piece, SocketPair::in(20000), "testing"); });
    near.write_all(some.data(), piece, nullptr, 0, SocketPair::in(20000), "testing");
    if (i >= 8) most = std::max(most, *window_of(fd));
    reader.join();
  }
  EXPECT_LE(most, limit);
  EXPECT_GT(most, limit / 2);
  EXPECT_EQ(far.limit(), limit);
}

TEST(Tcp, CongestionControlIsSetAndTold) {
  SocketPair pair;
  const std::string name = pair.near.congestion();
  EXPECT_FALSE(name.empty());
  Socket again = Socket::connect({"127.0.0.1", pair.listener.port()}, name, SocketPair::in(5000));
  EXPECT_EQ(again.congestion(), name);
  try {
    Socket::connect({"127.0.0.1", pair.listener.port()}, "nonesuch", SocketPair::in(5000));
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::usage);
    EXPECT_NE(std::string(error.what()).find("nonesuch"), std::string::npos);
  }
}

TEST(Tcp, ThePreferredCongestionControlIsToBeHad) {
  SocketPair pair;
  const std::string name = preferred_congestion();
  const Socket socket =
      Socket::connect({"127.0.0.1", pair.listener.port()}, name, SocketPair::in(5000));
  EXPECT_EQ(socket.congestion(), name.empty() ? pair.near.congestion() : name);
}

}  // namespace
}  // namespace duplex::net
