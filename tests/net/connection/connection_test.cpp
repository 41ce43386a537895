// One connection: the order in which its queue is sent, and its ledger against the kernel's
// counters.
#include "net/connection/connection.h"

#include <gtest/gtest.h>

#include <array>
#include <thread>

#include "tests/net/connection/bench.h"

namespace duplex::net {
namespace {

TEST(Connection, TheQueueIsOrderedByRoundThenPlace) {
  Bench bench;
  const std::vector<float> payload(100);
  const auto send = [&](FrameKind kind, std::uint32_t parameter, std::uint32_t chunk,
                        std::uint64_t step) {
    bench.connection->send(kind, chunk_of(parameter, chunk, payload.size() * sizeof(float)), step,
                           payload.data(), parameter);
  };
  bench.connection->part("the end");
  send(FrameKind::gradient, 0, 0, 5);
  send(FrameKind::gradient, 9, 0, 4);
  send(FrameKind::gradient, 9, 1, 4);
  send(FrameKind::gradient, 5, 0, 4);
  send(FrameKind::gradient, 0, 0, 4);
  send(FrameKind::weights, 5, 0, 5);
  send(FrameKind::weights, 0, 0, 5);
  bench.connection->start();

  const std::vector<RawFrame> order = all_frames(bench);
  // Kind, parameter, chunk, step: new weights belong to the round whose gradients made them.
  const std::vector<std::array<std::uint64_t, 4>> expected{
      {16, 0, 0, 5}, {17, 0, 0, 4}, {16, 5, 0, 5}, {17, 5, 0, 4}, {17, 9, 0, 4},
      {17, 9, 1, 4}, {17, 0, 0, 5}, {19, 0, 0, 0}, {20, 0, 0, 0}};
  ASSERT_EQ(order.size(), expected.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const RawFrame& frame = order[i];
    EXPECT_EQ((std::array<std::uint64_t, 4>{frame.kind, frame.parameter, frame.chunk, frame.step}),
              expected[i])
        << i;
  }
  const Bytes& report = order[7].payload;
  EXPECT_EQ(std::string(report.begin(), report.end()), "the end");
  EXPECT_EQ(bench.owner.departures, 7);
}

TEST(Connection, AsksForThePayloadWhenTheFrameLeavesAndEndsWithDone) {
  Bench bench;
  bench.connection->done(7);
  bench.connection->send(FrameKind::weights, chunk_of(3, 0, 400), 7, nullptr, 3);
  bench.connection->part("");
  bench.connection->start();
  const std::vector<RawFrame> order = all_frames(bench);
  ASSERT_EQ(order.size(), 3U);
  EXPECT_EQ(order[0].payload, Bytes(400, 7));
  EXPECT_EQ(order[1].kind, static_cast<std::uint16_t>(FrameKind::done));
  EXPECT_EQ(order[1].step, 7U);
  EXPECT_EQ(bench.owner.departures, 1);
}

TEST(Connection, TakesTurns) {
  Bench bench;
  const std::vector<float> payload(100);
  bench.connection->take_turns(true, 2);
  bench.connection->send(FrameKind::gradient, chunk_of(1, 0, 400), 0, payload.data(), 1);
  bench.connection->send(FrameKind::gradient, chunk_of(0, 0, 400), 0, payload.data(), 0);
  bench.connection->send(FrameKind::weights, chunk_of(0, 0, 400), 1, payload.data(), 0);
  bench.connection->start();
  bench.wait_for(bench.owner.wants);
  EXPECT_EQ(receive_raw(bench.other).kind, 23);
  bench.connection->grant();  // Notices wait for no turn.
  EXPECT_EQ(receive_raw(bench.other).kind, 24);

  RawFrame grant;
  grant.kind = 24;
  send_raw(bench.other, grant);
  EXPECT_EQ(receive_raw(bench.other).parameter, 0U);
  EXPECT_EQ(receive_raw(bench.other).parameter, 1U);
  EXPECT_EQ(receive_raw(bench.other).kind, 25);  // All is sent, so the turn is given back.
  EXPECT_FALSE(bench.owner.stepped);
  bench.connection->grant_weights();
  EXPECT_EQ(receive_raw(bench.other).kind, 16);
  bench.wait_for(bench.owner.stepped);
  EXPECT_FALSE(bench.owner.left);
  bench.owner.wants = false;
  bench.connection->send(FrameKind::weights, chunk_of(1, 0, 400), 1, payload.data(), 1);
  bench.wait_for(bench.owner.wants);
  bench.connection->grant_weights();
  EXPECT_EQ(receive_raw(bench.other).parameter, 1U);
  bench.wait_for(bench.owner.left);
  EXPECT_FALSE(bench.owner.broken);

  send_raw(bench.other, grant);
  bench.wait_for(bench.owner.broken);
  EXPECT_NE(bench.owner.message.find("was not asked for"), std::string::npos);
}

TEST(Connection, LongReportsComeInParts) {
  Bench bench;
  const std::string report(2 * Connection::report_part + 17, 'x');
  bench.connection->part(report);
  bench.connection->start();
  const std::vector<RawFrame> parts = all_frames(bench);
  ASSERT_EQ(parts.size(), 4U);
  EXPECT_EQ(parts[0].step, Connection::report_part + 17);
  EXPECT_EQ(parts[2].step, 0U);
  for (std::size_t i = 0; i < 3; ++i) send_raw(bench.other, parts[i]);
  RawFrame goodbye;
  goodbye.kind = 20;
  send_raw(bench.other, goodbye);
  bench.wait_for(bench.owner.goodbye);
  EXPECT_EQ(bench.owner.report, report);
}

TEST(Connection, ReportsAreBounded) {
  Bench bench;
  bench.connection->start();
  RawFrame part;
  part.kind = 19;
  part.step = Connection::report_limit;
  part.payload = {1};
  send_raw(bench.other, part);
  bench.wait_for(bench.owner.broken);
  EXPECT_NE(bench.owner.message.find("report: it has more than"), std::string::npos);
}

/// The other end lets the kernel's buffers fill up.
TEST(Connection, FramesForAPeerThatDoesNotReadAreBounded) {
  Bench bench;
  bench.connection->start();
  const auto tell = [&] { bench.connection->tell(FrameKind::window, 1 << 20); };
  do {
    for (int i = 0; i < 1000; ++i) tell();
  } while (bench.connection->wait_until_idle(Clock::now() + milliseconds(500)));
  EXPECT_FALSE(bench.owner.broken) << bench.owner.message;
  for (int i = 0; i < 1024; ++i) tell();
  EXPECT_TRUE(bench.owner.broken);
  EXPECT_EQ(bench.owner.code, Exit::timed_out);
  EXPECT_NE(bench.owner.message.find("rank 1 (there) takes none of the 1024 frames"),
            std::string::npos)
      << bench.owner.message;
  // The reason why the run ends still finds room, ahead of them.
  bench.connection->abort({"enough", Exit::timed_out});
  for (;;) {
    const RawFrame frame = receive_raw(bench.other);
    if (frame.kind == 21) break;
    EXPECT_EQ(frame.kind, 26);
  }
}

TEST(Connection, EarlierLayersOvertake) {
  Bench bench;
  constexpr std::uint64_t bytes = 1 << 20;
  constexpr std::uint32_t chunks = 64;
  const std::vector<float> payload(bytes / sizeof(float));
  bench.connection->start();
  // The last layer's gradient is on its way; nobody reads yet, and the kernel takes a part of it at
  // most. The first layer's gradient is queued later and must arrive sooner.
  for (std::uint32_t chunk = 0; chunk < chunks; ++chunk)
    bench.connection->send(FrameKind::gradient, chunk_of(9, chunk, bytes), 4, payload.data(), 9);
  char begun = 0;
  const Deadline deadline = soon();
  while (bench.other.peek(&begun, 1) == 0 && Clock::now() < deadline)
    std::this_thread::sleep_for(milliseconds(1));
  ASSERT_GT(bench.other.peek(&begun, 1), 0);
  bench.connection->send(FrameKind::gradient, chunk_of(0, 0, 400), 4, payload.data(), 0);
  bench.connection->part("");

  const std::vector<RawFrame> order = all_frames(bench);
  ASSERT_EQ(order.size(), chunks + 2U);
  std::size_t overtaker = 0;
  while (order[overtaker].parameter == 9) ++overtaker;
  EXPECT_GT(overtaker, 0U);
  EXPECT_LT(overtaker, chunks / 2U) << "chunks of the last layer before the first layer's";
  // The chunks themselves come whole and in order, since a frame that has begun is not interrupted.
  std::uint32_t next = 0;
  for (const RawFrame& frame : order) {
    if (frame.parameter != 9) continue;
    EXPECT_EQ(frame.chunk, next++);
    EXPECT_EQ(frame.payload.size(), bytes);
  }
}

TEST(Connection, AbortGoesBeforeEverything) {
  Bench bench;
  const std::vector<float> payload(1 << 18);
  bench.connection->send(FrameKind::weights, chunk_of(0, 0, payload.size() * sizeof(float)), 0,
                         payload.data(), 0);
  bench.connection->abort({"enough", Exit::timed_out});
  bench.connection->start();
  const RawFrame first = receive_raw(bench.other);
  EXPECT_EQ(first.kind, 21);
  EXPECT_EQ(raw_text(first.payload, 4), "enough");
  EXPECT_TRUE(bench.connection->wait_until_sent(soon()));
}

TEST(Connection, TellsThePeerItsPace) {
  Bench bench;
  bench.connection->start();
  bench.connection->tell(FrameKind::pace, 12345678);
  const RawFrame told = receive_raw(bench.other);
  EXPECT_EQ(told.kind, 27);
  EXPECT_EQ(told.step, 12345678U);
  RawFrame frame;
  frame.kind = 27;
  frame.step = 87654321;
  send_raw(bench.other, frame);
  const Deadline deadline = soon();
  while (bench.owner.pace == 0 && Clock::now() < deadline)
    std::this_thread::sleep_for(milliseconds(1));
  EXPECT_EQ(bench.owner.pace, 87654321U);
}

TEST(Connection, SignsOfLife) {
  Bench bench(milliseconds(200));
  bench.connection->start();
  // The connection sends heartbeats, several within the timeout...
  for (int i = 0; i < 2; ++i) EXPECT_EQ(receive_raw(bench.other).kind, 18);
  // ...and gives up a peer that sends none.
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
  bench.other = Socket();  // The other side's leaving does not change that either.
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

TEST(Connection, APeerThatDiesAfterItsGoodbyeIsLost) {
  Bench bench;
  bench.connection->start();
  RawFrame goodbye;
  goodbye.kind = 20;
  send_raw(bench.other, goodbye);
  bench.wait_for(bench.owner.goodbye);
  bench.other = Socket();  // Frames that come now are answered by a reset.
  bench.connection->part("");
  try {
    if (!bench.connection->wait_until_sent(soon())) ADD_FAILURE() << "the sending thread goes on";
    bench.connection->check_counters(soon());
    ADD_FAILURE() << "nothing was noticed";
  } catch (const NetworkError& error) {
    EXPECT_EQ(error.code, Exit::peer_lost) << error.what();
    EXPECT_NE(std::string(error.what()).find("rank 1 (there)"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace duplex::net
