// The weights that a worker waits for, chunk by chunk, tested without a connection.
#include "net/exchange/incoming_weights.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace duplex::net {
namespace {

using std::chrono::milliseconds;

/// Two parameters, cut evenly between two ranks; this one is rank 0.
class Incoming : public ::testing::Test {
 protected:
  static constexpr std::size_t count = 100000;

  static std::vector<Span> spans_of(std::vector<std::vector<float>>& weights) {
    std::vector<Span> spans;
    for (auto& values : weights) spans.push_back({"p", values.size(), values.data(), nullptr});
    return spans;
  }
  std::size_t count_frames() const {
    std::size_t frames = 0;
    for (std::size_t chunk = map_.first(0); chunk < map_.first(1); ++chunk)
      frames += map_[chunk].owner == 0 ? 0 : 1;
    return frames;
  }
  void fill(std::size_t parameter, std::uint64_t step) {
    for (std::size_t chunk = map_.first(parameter); chunk < map_.first(parameter + 1); ++chunk) {
      ASSERT_EQ(incoming_.reserve(chunk, step), weights_[parameter].data() + map_[chunk].offset);
      EXPECT_FALSE(incoming_.complete(parameter));
      incoming_.commit(chunk);
    }
  }

  const ShardMap map_ = ShardMap::distributed({count, count}, 2, Shards::even, 65536);
  std::vector<std::vector<float>> weights_{2, std::vector<float>(count)};
  const std::vector<Span> spans_ = spans_of(weights_);
  /// Frames of the first parameter's gradient: its other owner's chunks.
  std::size_t frames_ = count_frames();
  IncomingWeights incoming_{map_, spans_};
};

TEST_F(Incoming, AParameterIsCompleteWhenAllItsChunksAreThere) {
  fill(1, 0);
  EXPECT_TRUE(incoming_.complete(1));
  EXPECT_FALSE(incoming_.complete(0));
  EXPECT_FALSE(incoming_.wait(0, milliseconds(1)));
  fill(0, 0);
  EXPECT_TRUE(incoming_.wait(0, milliseconds(1)));
}

TEST_F(Incoming, OnlyWhatIsDueHasAPlace) {
  EXPECT_EQ(incoming_.reserve(0, 1), nullptr);
  fill(0, 0);
  EXPECT_EQ(incoming_.reserve(0, 0), nullptr);
  incoming_.expect_after_gradient(0, 1, frames_);
  EXPECT_EQ(incoming_.reserve(0, 0), nullptr);
  EXPECT_NE(incoming_.reserve(0, 1), nullptr);
  EXPECT_EQ(incoming_.reserve(0, 1), nullptr);  // It is on its way.
  EXPECT_TRUE(incoming_.missing(0));
  EXPECT_EQ(incoming_.due_step(0), 1U);
}

TEST_F(Incoming, TheGradientsOfOtherOwnersHaveToLeaveFirst) {
  fill(0, 0);
  incoming_.expect_after_gradient(0, 1, frames_);
  fill(0, 1);
  ASSERT_GT(frames_, 1U);
  for (std::size_t others = frames_; others > 0; --others) {
    EXPECT_FALSE(incoming_.complete(0));
    incoming_.gradient_sent(0);
  }
  EXPECT_TRUE(incoming_.complete(0));
}

TEST_F(Incoming, StopEndsAWait) {
  std::thread waiting([&] { EXPECT_FALSE(incoming_.wait(0, milliseconds(50000))); });
  incoming_.stop();
  waiting.join();
}

}  // namespace
}  // namespace duplex::net
