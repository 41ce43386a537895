// Weights of a frame that does not come to its end.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/net/connection/bench.h"

namespace duplex::net {
namespace {

TEST(Connection, WholeWeightsLeaveThoseBeforeWhereAFrameIsCut) {
  for (const bool whole : {true, false}) {
    Bench bench;
    bench.owner.buffer.assign(1000, 7.0F);
    if (whole) bench.connection->take_whole_weights();
    bench.connection->start();
    RawFrame weights;
    weights.kind = 16;
    weights.payload.assign(3000, 0);
    weights.length = 4000;
    send_raw(bench.other, weights);
    bench.other = Socket();
    bench.wait_for(bench.owner.broken);
    const std::vector<float>& kept = bench.owner.buffer;
    EXPECT_EQ(std::count(kept.begin(), kept.end(), 7.0F), whole ? 1000 : 250);
    EXPECT_EQ(bench.owner.arrivals, 0);
  }
}

TEST(Connection, WholeWeightsArePutIntoTheirPlace) {
  Bench bench;
  bench.connection->take_whole_weights();
  bench.connection->start();
  RawFrame weights;
  weights.kind = 16;
  for (int i = 0; i < 1000; ++i)
    weights.payload.insert(weights.payload.end(), {0, 0, 0x40, 0x40});  // 3
  send_raw(bench.other, weights);
  const Deadline deadline = soon();
  while (bench.owner.arrivals == 0 && Clock::now() < deadline)
    std::this_thread::sleep_for(milliseconds(1));
  EXPECT_EQ(bench.owner.buffer, std::vector<float>(1000, 3.0F));
}

}  // namespace
}  // namespace duplex::net
