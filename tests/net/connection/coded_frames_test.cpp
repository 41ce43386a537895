// Frames whose values are not float32 on the wire, byte by byte.
#include <gtest/gtest.h>

#include <thread>

#include "tests/net/connection/bench.h"

namespace duplex::net {
namespace {

TEST(Connection, CodesValuesOnTheWay) {
  Bench bench;
  const std::vector<float> values(100, 1.0F + 0x1p-9F);  // Between 1 and the next of bf16.
  bench.connection->send(FrameKind::gradient, chunk_of(1, 0, 400), 0, values.data(), 1,
                         Coding::bf16);
  bench.connection->send(FrameKind::weights, chunk_of(0, 0, 400), 0, nullptr, 0, Coding::bf16);
  bench.connection->part("");
  bench.connection->start();
  RawFrame weights;
  weights.kind = 16 + 256;
  for (int i = 0; i < 100; ++i) weights.payload.insert(weights.payload.end(), {0x40, 0xc0});
  send_raw(bench.other, weights);
  const std::vector<RawFrame> frames = all_frames(bench);
  ASSERT_EQ(frames.size(), 3U);
  EXPECT_EQ(frames[0].kind, 16 + 256);
  EXPECT_EQ(frames[0].payload, Bytes(200, 0));
  EXPECT_EQ(frames[1].kind, 17 + 256);
  ASSERT_EQ(frames[1].payload.size(), 200U);
  EXPECT_EQ(get(frames[1].payload, 198, 2), 0x3f80U);
  const Deadline deadline = soon();
  while (bench.owner.arrivals == 0 && Clock::now() < deadline)
    std::this_thread::sleep_for(milliseconds(1));
  EXPECT_EQ(bench.owner.buffer, std::vector<float>(100, -3.0F));
  const FrameBytes bytes = bench.ledger.bytes();
  EXPECT_EQ(bytes.saved_sent, 400);
  EXPECT_EQ(bytes.saved_received, 200);
}

}  // namespace
}  // namespace duplex::net
