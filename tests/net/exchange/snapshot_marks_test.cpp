// The marks by which an owner knows when to copy its chunks.
#include "net/exchange/snapshot_marks.h"

#include <gtest/gtest.h>

#include "net/wire/frame.h"

namespace duplex::net {
namespace {

std::vector<std::uint64_t> numbers(const std::vector<CheckpointCall>& calls) {
  std::vector<std::uint64_t> numbers;
  for (const CheckpointCall& call : calls) numbers.push_back(call.steps);
  return numbers;
}

using Numbers = std::vector<std::uint64_t>;

TEST(SnapshotMarks, TheLastMarkCompletesACheckpoint) {
  SnapshotMarks marks(3);
  EXPECT_EQ(numbers(marks.mark(2, {1, 0})), Numbers{});
  EXPECT_EQ(numbers(marks.mark(0, {1, 0})), Numbers{});
  EXPECT_EQ(numbers(marks.mark(0, {2, 15})), Numbers{});
  EXPECT_EQ(numbers(marks.mark(1, {1, 0})), Numbers{1});
  EXPECT_EQ(numbers(marks.mark(1, {2, 15})), Numbers{});
  const auto second = marks.mark(2, {2, 15});
  ASSERT_EQ(numbers(second), Numbers{2});
  EXPECT_EQ(second[0].signal, 15);
}

TEST(SnapshotMarks, NobodyWaitsForAWorkerThatHasEnded) {
  SnapshotMarks marks(3);
  EXPECT_EQ(numbers(marks.end(0)), Numbers{});
  EXPECT_EQ(numbers(marks.mark(1, {1, 0})), Numbers{});
  EXPECT_EQ(numbers(marks.mark(1, {2, 0})), Numbers{});
  EXPECT_EQ(numbers(marks.end(2)), (Numbers{1, 2})) << "in order";
  EXPECT_EQ(numbers(marks.mark(0, {1, 0})), Numbers{}) << "it may come late";
  EXPECT_EQ(numbers(marks.mark(0, {3, 0})), Numbers{}) << "worker 1 still trains";
  EXPECT_EQ(numbers(marks.mark(1, {3, 0})), Numbers{3});
}

/// A worker that is idle is not waited for, and is again when it has batches to train.
TEST(SnapshotMarks, AWorkerMayBeginAgain) {
  SnapshotMarks marks(2);
  marks.end(0);
  marks.begin(0);
  EXPECT_EQ(numbers(marks.open({1, 0})), Numbers{});
  EXPECT_EQ(numbers(marks.mark(1, {1, 0})), Numbers{});
  EXPECT_EQ(numbers(marks.mark(0, {1, 0})), Numbers{1});
  marks.end(0);
  EXPECT_EQ(numbers(marks.open({2, 15})), Numbers{});
  const auto last = marks.end(1);
  ASSERT_EQ(numbers(last), Numbers{2}) << "nobody is left to mark it";
  EXPECT_EQ(last[0].signal, 15);
  EXPECT_EQ(numbers(marks.open({3, 0})), Numbers{3});
}

/// A worker that was lost before it marked a checkpoint, and is back before others have, takes
/// part.
TEST(SnapshotMarks, AWorkerThatComesBackOwesWhatIsOpen) {
  SnapshotMarks marks(3, 7);
  marks.open({8, 0});
  marks.mark(0, {8, 0});
  marks.end(0);
  marks.end(1);
  EXPECT_EQ(marks.begin(0), 8U) << "it counts on from what it has marked";
  EXPECT_EQ(marks.begin(1), 7U) << "as the run began";
  EXPECT_EQ(numbers(marks.owed_by(0)), Numbers{}) << "it has marked it";
  EXPECT_EQ(numbers(marks.owed_by(1)), Numbers{8});
  EXPECT_EQ(numbers(marks.mark(2, {8, 0})), Numbers{});
  EXPECT_EQ(numbers(marks.mark(1, {8, 0})), Numbers{8});
  EXPECT_EQ(numbers(marks.owed_by(1)), Numbers{});
  EXPECT_EQ(marks.begin(1), 8U);
  EXPECT_EQ(numbers(marks.mark(0, {7, 0})), Numbers{}) << "it was before this run";
}

TEST(SnapshotMarks, MarksThatCannotBeAreRefused) {
  SnapshotMarks marks(2);
  marks.mark(0, {1, 0});
  EXPECT_THROW(marks.mark(0, {1, 0}), ProtocolError);
  EXPECT_EQ(numbers(marks.mark(1, {1, 0})), Numbers{1});
  EXPECT_EQ(numbers(marks.mark(1, {1, 0})), Numbers{}) << "nobody waits for it";
  for (std::uint64_t number = 2; number < 2 + CheckpointCalls::most_open; ++number)
    marks.mark(0, {number, 0});
  EXPECT_THROW(marks.mark(0, {1000, 0}), ProtocolError);
}

}  // namespace
}  // namespace duplex::net
