// Sockets on loopback: one deadline for a whole call, and errors that say which and whose.
#include "net/listener.h"

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

#include "core/mapped_memory.h"
#include "net/socket_setup.h"

namespace duplex::net {
namespace {

using std::chrono::milliseconds;

struct Pair {
  Pair() : listener(Listener::open({"127.0.0.1", 0})) {
    near = Socket::connect({"127.0.0.1", listener.port()}, "", in(5000));
    far = listener.accept(milliseconds(5000));
    near.name_peer("rank 7 (there)");
  }
  static Deadline in(int ms) { return Clock::now() + milliseconds(ms); }
  Listener listener;
  Socket near, far;
};

double seconds_of(const std::function<void()>& body) {
  const auto start = Clock::now();
  body();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

TEST(Socket, CarriesBothPartsWhole) {
  Pair pair;
  std::vector<char> head(1000, 'h'), body(20 << 20);
  for (std::size_t i = 0; i < body.size(); ++i) body[i] = static_cast<char>(i * 2654435761U >> 24);
  std::vector<char> got(head.size() + body.size());
  std::thread reader(
      [&] { pair.far.read_exact(got.data(), got.size(), Pair::in(20000), "testing"); });
  pair.near.write_all(head.data(), head.size(), body.data(), body.size(), Pair::in(20000),
                      "testing");
  reader.join();
  EXPECT_TRUE(std::equal(head.begin(), head.end(), got.begin()));
  EXPECT_TRUE(std::equal(body.begin(), body.end(), got.begin() + 1000));
}

TEST(Socket, CarriesLentBodiesWhole) {
  const WithoutSigpipe quiet;  // This thread's, and those it begins.
  Pair pair;
  std::vector<char> body(5 << 20);
  for (std::size_t i = 0; i < body.size(); ++i) body[i] = static_cast<char>(i * 2654435761U >> 24);
  const std::vector<std::size_t> sizes = {0,     7,      32767,   32768,
                                          65536, 300001, 1 << 20, body.size() - 3};
  std::thread writer([&] {
    for (const std::size_t size : sizes)
      pair.near.write_lent("head", 4, body.data() + 3, size, Pair::in(20000), "testing");
  });
  for (const std::size_t size : sizes) {
    std::vector<char> got(4 + size);
    pair.far.read_exact(got.data(), got.size(), Pair::in(20000), "testing");
    EXPECT_TRUE(std::equal(got.begin() + 4, got.end(), body.begin() + 3)) << size;
    EXPECT_EQ(std::string(got.begin(), got.begin() + 4), "head");
  }
  writer.join();
}

TEST(Socket, WhatWasLentAndUnmappedStaysAsItWas) {
  const WithoutSigpipe quiet;
  Pair pair;
  constexpr std::size_t size = 64 * 1024;
  {
    const Buffer lent = map_memory(size);
    std::memset(lent.data(), 'a', size);
    pair.near.write_lent(nullptr, 0, lent.data(), size, Pair::in(20000), "testing");
  }
  const Buffer other = map_memory(size);
  std::memset(other.data(), 'b', size);
  std::vector<char> got(size);
  pair.far.read_exact(got.data(), size, Pair::in(20000), "testing");
  EXPECT_EQ(got, std::vector<char>(size, 'a'));
}

TEST(Socket, OneDeadlineForAWholeRead) {
  Pair pair;
  std::thread drip([&] {
    try {
      for (int i = 0; i < 200; ++i) {
        pair.far.write_all("x", 1, nullptr, 0, Pair::in(1000), "dripping");
        std::this_thread::sleep_for(milliseconds(10));
      }
    } catch (const NetworkError&) {  // The reader gave up: as it should.
    }
  });
  char buffer[1000];
  const double took = seconds_of([&] {
    try {
      pair.near.read_exact(buffer, sizeof buffer, Pair::in(200), "receiving weights");
      ADD_FAILURE() << "a thousand bytes in 0.2 s at 100 bytes/s";
    } catch (const NetworkError& error) {
      EXPECT_EQ(error.code, Exit::timed_out);
      EXPECT_EQ(error.call, "recv");
      EXPECT_EQ(error.peer, "rank 7 (there)");
      EXPECT_GE(error.seconds, 0.2);
      const std::string text = error.what();
      EXPECT_NE(text.find("rank 7 (there)"), std::string::npos);
      EXPECT_NE(text.find("receiving weights"), std::string::npos);
    }
  });
  EXPECT_LT(took, 1.5);
  pair.near.shut_down();
  drip.join();
}

TEST(Socket, AWriteThatNobodyReadsTimesOut) {
  const WithoutSigpipe quiet;
  std::vector<char> much(64 << 20);
  for (const auto write : {&Socket::write_all, &Socket::write_lent}) {
    Pair pair;
    try {
      (pair.near.*write)("head", 4, much.data(), much.size(), Pair::in(200), "sending weights");
      ADD_FAILURE() << "64 MiB went nowhere";
    } catch (const NetworkError& error) {
      EXPECT_EQ(error.code, Exit::timed_out);
      EXPECT_EQ(error.call, "send");
    }
  }
}

TEST(Socket, AWriteToAnEndedConnectionFails) {
  const WithoutSigpipe quiet;
  std::vector<char> much(64 << 20);
  for (const auto write : {&Socket::write_all, &Socket::write_lent}) {
    Pair pair;
    std::thread closing([&] {
      char byte = 0;
      pair.far.read_exact(&byte, 1, Pair::in(5000), "testing");
      pair.far = Socket();
    });
    for (int again = 0; again < 2; ++again) {  // ECONNRESET, then EPIPE.
      try {
        (pair.near.*write)("head", 4, much.data(), much.size(), Pair::in(20000), "sending weights");
        ADD_FAILURE() << "64 MiB went nowhere";
      } catch (const NetworkError& error) {
        EXPECT_EQ(error.code, Exit::peer_lost);
        EXPECT_NE(std::string(error.what()).find("sending weights"), std::string::npos);
      }
    }
    closing.join();
  }
}

TEST(Socket, AnEndedConnectionIsALostPeer) {
  Pair pair;
  pair.far = Socket();
  char byte = 0;
  try {
    pair.near.read_exact(&byte, 1, Pair::in(5000), "receiving weights");
    ADD_FAILURE();
  } catch (const NetworkError& error) {
    EXPECT_EQ(error.code, Exit::peer_lost);
  }
}

TEST(Socket, ShutDownWakesAReader) {
  Pair pair;
  std::thread waker([&] {
    std::this_thread::sleep_for(milliseconds(30));
    pair.near.shut_down();
  });
  char byte = 0;
  EXPECT_THROW(pair.near.read_exact(&byte, 1, Pair::in(20000), "testing"), NetworkError);
  waker.join();
}

TEST(Socket, NobodyListening) {
  std::uint16_t port = 0;
  { port = Listener::open({"127.0.0.1", 0}).port(); }
  try {
    Socket::connect({"127.0.0.1", port}, "", Pair::in(1000));
    ADD_FAILURE();
  } catch (const NetworkError& error) {
    EXPECT_EQ(error.code, Exit::peer_lost);
    EXPECT_NE(std::string(error.what()).find("127.0.0.1:" + std::to_string(port)),
              std::string::npos);
  }
}

TEST(Socket, KernelCountsWhatWasSent) {
  Pair pair;
  std::vector<char> some(300000);
  std::thread reader([&] {
    std::vector<char> got(some.size());
    pair.far.read_exact(got.data(), got.size(), Pair::in(20000), "testing");
  });
  pair.near.write_all(some.data(), some.size(), nullptr, 0, Pair::in(20000), "testing");
  reader.join();
  if (!pair.near.counters().known) GTEST_SKIP() << "this kernel counts no bytes in TCP_INFO";
  // An acknowledgement may wait for 40 ms.
  const Deadline acknowledged = Pair::in(5000);
  while (pair.near.counters().sent < some.size() && Clock::now() < acknowledged)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(pair.near.counters().sent, some.size());
  EXPECT_EQ(pair.far.counters().received, some.size());
  EXPECT_EQ(pair.near.counters().received, 0U);
  // The end of the connection is no byte of it.
  pair.far = Socket();
  char byte = 0;
  EXPECT_THROW(pair.near.read_exact(&byte, 1, Pair::in(5000), "testing"), NetworkError);
  EXPECT_EQ(pair.near.counters().received, 0U);
}

TEST(Socket, CountersHoldWhileThePeerCloses) {
  if (!Pair().near.counters().known) GTEST_SKIP() << "this kernel counts no bytes in TCP_INFO";
  for (int i = 0; i < 300; ++i) {
    Pair pair;
    char byte = 'x';
    pair.far.write_all(&byte, 1, nullptr, 0, Pair::in(5000), "testing");
    pair.near.read_exact(&byte, 1, Pair::in(5000), "testing");
    std::thread closing([&] { pair.far = Socket(); });
    for (int look = 0; look < 60; ++look) EXPECT_EQ(pair.near.counters().received, 1U);
    closing.join();
  }
}

// A packet holds so many pages that it is full before its segment is: the kernel keeps it back for
// what follows. Did a write wait for it, each would take a timer's 0.2 s.
TEST(Socket, AnUnfinishedSegmentDoesNotStopTheWriter) {
  const WithoutSigpipe quiet;
  constexpr std::size_t page = 4096, size = 1 << 20, turns = 3000;
  const std::unique_ptr<void, decltype(&std::free)> memory(std::aligned_alloc(page, size + page),
                                                           &std::free);
  std::memset(memory.get(), 1, size + page);
  Pair pair;
  std::thread writer([&] {
    const char* body = static_cast<const char*>(memory.get());
    const Deadline deadline = Pair::in(10000);
    try {
      for (std::size_t i = 0; i < turns; ++i)
        pair.near.write_lent("head", 4, body + i * 499 % page, size, deadline, "testing");
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
      pair.near.shut_down();
    }
  });
  std::vector<char> got(4 + size);
  try {
    for (std::size_t i = 0; i < turns; ++i)
      pair.far.read_exact(got.data(), got.size(), Pair::in(20000), "testing");
  } catch (const NetworkError&) {  // The writer says why.
  }
  writer.join();
}

/// Connects as over Ethernet, with segments of 1,448 bytes; loopback's own are of all sizes.
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

TEST(Socket, CorkKeepsAnUnfinishedSegmentBack) {
  Listener listener = Listener::open({"127.0.0.1", 0});
  Socket near(connect_in_segments(listener.port()), "there");
  Socket far = listener.accept(milliseconds(5000));
  char got = ' ';
  const auto comes = [&] {
    return seconds_of([&] { far.read_exact(&got, 1, Pair::in(5000), "testing"); });
  };
  near.cork(true);
  near.write_all("a", 1, "b", 1, Pair::in(5000), "testing");
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_EQ(far.peek(&got, 1), 0);
  near.cork(false);
  EXPECT_LT(comes(), 0.1);
  near.write_all("c", 1, "d", 1, Pair::in(5000), "testing");
  for (int i = 0; i < 3; ++i) EXPECT_LT(comes(), 0.1);
  EXPECT_EQ(got, 'd');
}

/// An unfinished segment of loopback is as much as may be unsent: behind it nothing more would be
/// taken until a timer sends it.
TEST(Socket, CorkDoesNotStopTheWriterOverLoopback) {
  const WithoutSigpipe quiet;
  constexpr std::size_t most = 300000, turns = 100;
  Pair pair;
  std::vector<char> some(most), got(most);
  const auto size = [](std::size_t i) { return most - i * 1999; };
  std::thread reader([&] {
    for (std::size_t i = 0; i < turns; ++i)
      pair.far.read_exact(got.data(), size(i), Pair::in(60000), "testing");
  });
  EXPECT_LT(seconds_of([&] {
              pair.near.cork(true);
              for (std::size_t i = 0; i < turns; ++i)
                pair.near.write_lent("head", 4, some.data(), size(i) - 4, Pair::in(60000),
                                     "testing");
              pair.near.cork(false);
            }),
            2.0);
  reader.join();
}

/// What the peer lets this side have under way; none: the kernel does not tell (before 5.4).
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

/// Once something has come, the kernel would give more: it knows by then what memory segments take.
/// So it is told again.
TEST(Socket, LimitOfReceivingHolds) {
  constexpr std::size_t limit = 128 << 10, piece = 1 << 20;
  Listener listener = Listener::open({"127.0.0.1", 0});
  const int fd = connect_in_segments(listener.port());
  Socket near(fd, "there"), far = listener.accept(milliseconds(5000));
  if (!window_of(fd))
    GTEST_SKIP()
        << "this kernel does not tell the window that a peer gives (Linux from 5.4 on does)";
  std::vector<char> some(piece), got(piece);
  std::size_t most = 0;
  for (int i = 0; i < 16; ++i) {
    far.limit_receiving(limit);
    std::thread reader([&] { far.read_exact(got.data(), piece, Pair::in(20000), "testing"); });
    near.write_all(some.data(), piece, nullptr, 0, Pair::in(20000), "testing");
    if (i >= 8) most = std::max(most, *window_of(fd));
    reader.join();
  }
  EXPECT_LE(most, limit);
  EXPECT_GT(most, limit / 2);
  EXPECT_EQ(far.limit(), limit);
}

TEST(Socket, CongestionControlIsSetAndTold) {
  Pair pair;
  const std::string name = pair.near.congestion();
  EXPECT_FALSE(name.empty());
  Socket again = Socket::connect({"127.0.0.1", pair.listener.port()}, name, Pair::in(5000));
  EXPECT_EQ(again.congestion(), name);
  try {
    Socket::connect({"127.0.0.1", pair.listener.port()}, "nonesuch", Pair::in(5000));
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::usage);
    EXPECT_NE(std::string(error.what()).find("nonesuch"), std::string::npos);
  }
}

TEST(Socket, ThePreferredCongestionControlIsToBeHad) {
  Pair pair;
  const std::string name = preferred_congestion();
  const Socket socket = Socket::connect({"127.0.0.1", pair.listener.port()}, name, Pair::in(5000));
  EXPECT_EQ(socket.congestion(), name.empty() ? pair.near.congestion() : name);
}

TEST(Listener, ATakenPortIsNamed) {
  const Listener listener = Listener::open({"127.0.0.1", 0});
  try {
    Listener::open({"127.0.0.1", listener.port()});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("127.0.0.1:" + std::to_string(listener.port())),
              std::string::npos);
  }
  EXPECT_THROW(Listener::open({"192.0.2.1", 0}), Error);  // TEST-NET-1: nobody's.
  EXPECT_TRUE(listener.loopback());
  EXPECT_FALSE(Listener::open({"0.0.0.0", 0}).loopback());
}

TEST(Address, Parse) {
  const auto parse = [](const char* text) { return Address::parse(text, 7117).str(); };
  EXPECT_EQ(parse("node1"), "node1:7117");
  EXPECT_EQ(parse("node1:80"), "node1:80");
  EXPECT_EQ(parse("10.0.0.1:0"), "10.0.0.1:0");
  EXPECT_EQ(parse("[::1]:99"), "[::1]:99");
  EXPECT_EQ(parse("[::1]"), "[::1]:7117");
  for (const char* bad : {"", ":80", "node1:", "node1:x", "node1:65536", "node1:1:2", "[::1",
                          "[]:1", "[::1]80", "node1:-1"})
    EXPECT_THROW(Address::parse(bad, 1), Error) << bad;
}

}  // namespace
}  // namespace duplex::net
