// One connection: the order in which its queue goes out, and the check of its books.
#include "net/connection.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/net/raw_peer.h"

namespace duplex::net {
namespace {

using std::chrono::milliseconds;

struct Owner final : ConnectionOwner {
  void* destination(int, const FrameHeader& header) override {
    buffer.resize(header.length);
    return buffer.data();
  }
  void received(int, const FrameHeader&) override { ++arrivals; }
  void sent(int, const FrameHeader&) override { ++departures; }
  void reported(int, std::string text) override { report = std::move(text); }
  void parted(int) override { goodbye = true; }
  void failed(int, std::exception_ptr cause) override {
    try {
      std::rethrow_exception(cause);
    } catch (const Error& error) {
      message = error.what();
      code = error.code;
    }
    broken = true;
  }
  std::vector<std::uint8_t> buffer;
  std::string report, message;
  Exit code = Exit::ok;
  std::atomic<int> arrivals{0}, departures{0};
  std::atomic<bool> goodbye{false}, broken{false};
};

/// A connection and the bare socket at its other end.
struct Bench {
  explicit Bench(milliseconds timeout = milliseconds(20000),
                 const std::vector<FrameRecord>& handshake = {})
      : ledger(0, {}, "") {
    Listener listener = Listener::open({"127.0.0.1", 0});
    Link link;
    link.rank = 1;
    link.peer = "rank 1 (there)";
    link.socket = Socket::connect({"127.0.0.1", listener.port()}, "", soon());
    link.socket.name_peer(link.peer);
    link.handshake = handshake;
    other = listener.accept(milliseconds(5000));
    connection = std::make_unique<Connection>(std::move(link), owner, ledger, timeout);
  }
  void wait_for(const std::atomic<bool>& what) const {
    const Deadline deadline = soon();
    while (!what && Clock::now() < deadline) std::this_thread::sleep_for(milliseconds(1));
    EXPECT_TRUE(what);
  }
  Owner owner;
  Ledger ledger;
  Socket other;
  std::unique_ptr<Connection> connection;
};

TEST(Connection, EarlierLayersOvertake) {
  Bench bench;
  constexpr std::uint64_t bytes = 1 << 20;
  constexpr std::uint32_t chunks = 64;
  const std::vector<char> payload(bytes);
  bench.connection->start();
  // The last layer's many chunks, then, as backward goes on, those before it; nobody reads yet, so
  // most of them still queue when the first layer's comes.
  for (std::uint32_t chunk = 0; chunk < chunks; ++chunk)
    bench.connection->send(FrameKind::gradient, 9, chunk, 4, payload.data(), bytes);
  bench.connection->send(FrameKind::gradient, 5, 0, 4, payload.data(), 400);
  bench.connection->send(FrameKind::gradient, 0, 0, 4, payload.data(), 400);
  bench.connection->send(FrameKind::weights, 5, 0, 5, payload.data(), 400);
  bench.connection->send(FrameKind::weights, 0, 0, 5, payload.data(), 400);
  bench.connection->send(FrameKind::gradient, 0, 0, 5, payload.data(), 400);
  bench.connection->part("the end");

  std::vector<RawFrame> order;
  do order.push_back(receive_raw(bench.other));
  while (order.back().kind != 20);
  std::size_t overtaker = 0;
  while (order[overtaker].parameter == 9) ++overtaker;
  EXPECT_LT(overtaker, chunks / 2U) << "chunks of the last layer before the first layer's";
  const auto expect = [&](std::size_t at, std::uint16_t kind, std::uint32_t parameter,
                          std::uint64_t step) {
    EXPECT_EQ(order[at].kind, kind) << at;
    EXPECT_EQ(order[at].parameter, parameter) << at;
    EXPECT_EQ(order[at].step, step) << at;
  };
  // By round (new weights belong to the step whose gradients made them), parameter, weights first.
  expect(overtaker + 0, 16, 0, 5);
  expect(overtaker + 1, 17, 0, 4);
  expect(overtaker + 2, 16, 5, 5);
  expect(overtaker + 3, 17, 5, 4);
  ASSERT_EQ(order.size(), chunks + 7U);
  for (std::size_t at = overtaker + 4; at < chunks + 4U; ++at) expect(at, 17, 9, 4);
  expect(chunks + 4U, 17, 0, 5);  // A later step waits for all of the earlier.
  EXPECT_EQ(order[chunks + 5U].kind, 19);
  EXPECT_EQ(std::string(order[chunks + 5U].payload.begin(), order[chunks + 5U].payload.end()),
            "the end");
  for (std::uint32_t chunk = 0; chunk < overtaker; ++chunk) EXPECT_EQ(order[chunk].chunk, chunk);
  EXPECT_TRUE(bench.connection->wait_until_sent(soon()));
  EXPECT_EQ(bench.owner.departures, static_cast<int>(chunks) + 5);
}

TEST(Connection, AbortGoesBeforeEverything) {
  Bench bench;
  const std::vector<char> payload(1 << 20);
  bench.connection->send(FrameKind::weights, 0, 0, 0, payload.data(), payload.size());
  bench.connection->abort({"enough", Exit::timed_out});
  bench.connection->start();
  const RawFrame first = receive_raw(bench.other);
  EXPECT_EQ(first.kind, 21);
  EXPECT_EQ(raw_text(first.payload, 4), "enough");
  EXPECT_TRUE(bench.connection->wait_until_sent(soon()));
}

TEST(Connection, SignsOfLife) {
  Bench bench(milliseconds(200));
  bench.connection->start();
  // It says it lives, several times within the timeout...
  for (int i = 0; i < 2; ++i) EXPECT_EQ(receive_raw(bench.other).kind, 18);
  // ...and gives up a peer that does not.
  bench.wait_for(bench.owner.broken);
  EXPECT_EQ(bench.owner.code, Exit::timed_out);
  EXPECT_NE(bench.owner.message.find("rank 1 (there)"), std::string::npos);
  EXPECT_NE(bench.owner.message.find("sign of life"), std::string::npos);
}

void exchange_goodbyes(Bench& bench) {
  bench.connection->start();
  bench.connection->part("");
  EXPECT_EQ(receive_raw(bench.other).kind, 20);
  RawFrame goodbye;
  goodbye.kind = 20;
  send_raw(bench.other, goodbye);
  bench.wait_for(bench.owner.goodbye);
  EXPECT_TRUE(bench.connection->wait_until_sent(soon()));
}

TEST(Connection, BooksAgreeWithTheKernel) {
  Bench bench;
  exchange_goodbyes(bench);
  EXPECT_NO_THROW(bench.connection->check_counters(soon()));
  bench.other = Socket();  // Nor does the other side's leaving change that.
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_NO_THROW(bench.connection->check_counters(soon()));
}

TEST(Connection, WrongBooksAreAnError) {
  {
    Listener listener = Listener::open({"127.0.0.1", 0});
    if (!Socket::connect({"127.0.0.1", listener.port()}, "", soon()).counters().known)
      GTEST_SKIP() << "this kernel counts no bytes in TCP_INFO";
  }
  for (const bool sent : {true, false}) {
    FrameRecord never;
    never.sent = sent;
    never.bytes = 1;
    Bench bench(milliseconds(20000), {never});
    exchange_goodbyes(bench);
    try {
      bench.connection->check_counters(Clock::now() + milliseconds(20));
      ADD_FAILURE() << "a byte too many went unnoticed";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("rank 1 (there)"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace duplex::net
