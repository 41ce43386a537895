// Sockets on loopback: bytes written arrive, a call has one deadline, and errors name the call and
// the peer.
#include "net/wire/socket.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "core/mapped_memory.h"
#include "net/wire/network_reason.h"
#include "net/wire/socket_setup.h"
#include "tests/net/wire/socket_pair.h"

namespace duplex::net {
namespace {

using std::chrono::milliseconds;

TEST(Socket, CarriesBothPartsWhole) {
  SocketPair pair;
  std::vector<char> head(1000, 'h'), body(20 << 20);
  for (std::size_t i = 0; i < body.size(); ++i) body[i] = static_cast<char>(i * 2654435761U >> 24);
  std::vector<char> got(head.size() + body.size());
  std::thread reader(
      [&] { pair.far.read_exact(got.data(), got.size(), SocketPair::in(20000), "testing"); });
  pair.near.write_all(head.data(), head.size(), body.data(), body.size(), SocketPair::in(20000),
                      "testing");
  reader.join();
  EXPECT_TRUE(std::equal(head.begin(), head.end(), got.begin()));
  EXPECT_TRUE(std::equal(body.begin(), body.end(), got.begin() + 1000));
}

TEST(Socket, CarriesBorrowedBodiesWhole) {
  const WithoutSigpipe quiet;  // It holds for this thread and those that it starts.
  SocketPair pair;
  std::vector<char> body(5 << 20);
  for (std::size_t i = 0; i < body.size(); ++i) body[i] = static_cast<char>(i * 2654435761U >> 24);
  const std::vector<std::size_t> sizes = {0,     7,      32767,   32768,
                                          65536, 300001, 1 << 20, body.size() - 3};
  std::thread writer([&] {
    for (const std::size_t size : sizes)
      pair.near.write_borrowed("head", 4, body.data() + 3, size, SocketPair::in(20000), "testing");
  });
  for (const std::size_t size : sizes) {
    std::vector<char> got(4 + size);
    pair.far.read_exact(got.data(), got.size(), SocketPair::in(20000), "testing");
    EXPECT_TRUE(std::equal(got.begin() + 4, got.end(), body.begin() + 3)) << size;
    EXPECT_EQ(std::string(got.begin(), got.begin() + 4), "head");
  }
  writer.join();
}

TEST(Socket, WhatWasBorrowedAndUnmappedStaysAsItWas) {
  const WithoutSigpipe quiet;
  SocketPair pair;
  constexpr std::size_t size = 64 * 1024;
  {
    const Buffer borrowed = map_memory(size);
    std::memset(borrowed.data(), 'a', size);
    pair.near.write_borrowed(nullptr, 0, borrowed.data(), size, SocketPair::in(20000), "testing");
  }
  const Buffer other = map_memory(size);
  std::memset(other.data(), 'b', size);
  std::vector<char> got(size);
  pair.far.read_exact(got.data(), size, SocketPair::in(20000), "testing");
  EXPECT_EQ(got, std::vector<char>(size, 'a'));
}

TEST(Socket, OneDeadlineForAWholeRead) {
  SocketPair pair;
  std::thread drip([&] {
    try {
      for (int i = 0; i < 200; ++i) {
        pair.far.write_all("x", 1, nullptr, 0, SocketPair::in(1000), "dripping");
        std::this_thread::sleep_for(milliseconds(10));
      }
    } catch (const NetworkError&) {  // The reader gave up, as it should.
    }
  });
  char buffer[1000];
  const double took = seconds_of([&] {
    try {
      pair.near.read_exact(buffer, sizeof buffer, SocketPair::in(200), "receiving weights");
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
  for (const auto write : {&Socket::write_all, &Socket::write_borrowed}) {
    SocketPair pair;
    try {
      (pair.near.*write)("head", 4, much.data(), much.size(), SocketPair::in(200),
                         "sending weights");
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
  for (const auto write : {&Socket::write_all, &Socket::write_borrowed}) {
    SocketPair pair;
    std::thread closing([&] {
      char byte = 0;
      pair.far.read_exact(&byte, 1, SocketPair::in(5000), "testing");
      pair.far = Socket();
    });
    for (int again = 0; again < 2; ++again) {  // First ECONNRESET, then EPIPE.
      try {
        (pair.near.*write)("head", 4, much.data(), much.size(), SocketPair::in(20000),
                           "sending weights");
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
  SocketPair pair;
  pair.far = Socket();
  char byte = 0;
  try {
    pair.near.read_exact(&byte, 1, SocketPair::in(5000), "receiving weights");
    ADD_FAILURE();
  } catch (const NetworkError& error) {
    EXPECT_EQ(error.code, Exit::peer_lost);
    EXPECT_EQ(bare_reason(error), "the connection was closed");
  }
}

TEST(Socket, ShutDownWakesAReader) {
  SocketPair pair;
  std::thread waker([&] {
    std::this_thread::sleep_for(milliseconds(30));
    pair.near.shut_down();
  });
  char byte = 0;
  EXPECT_THROW(pair.near.read_exact(&byte, 1, SocketPair::in(20000), "testing"), NetworkError);
  waker.join();
}

TEST(Socket, NobodyListening) {
  std::uint16_t port = 0;
  { port = Listener::open({"127.0.0.1", 0}).port(); }
  try {
    Socket::connect({"127.0.0.1", port}, "", SocketPair::in(1000));
    ADD_FAILURE();
  } catch (const NetworkError& error) {
    EXPECT_EQ(error.code, Exit::peer_lost);
    EXPECT_NE(std::string(error.what()).find("127.0.0.1:" + std::to_string(port)),
              std::string::npos);
    EXPECT_EQ(bare_reason(error), "Connection refused");
  }
}

}  // namespace
}  // namespace duplex::net
