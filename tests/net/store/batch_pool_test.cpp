// The batches of lost workers, and who trains them.
#include "net/store/batch_pool.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "net/wire/frame.h"

namespace duplex::net {
namespace {

/// A pool of workers that have `total` steps each; `done` are the batches that are applied.
struct Bench {
  Bench(int workers, std::uint64_t steps)
      : total(steps),
        done(static_cast<std::size_t>(workers)),
        pool(std::vector<StepRange>(static_cast<std::size_t>(workers), {0, BatchPool::to_its_end}),
             [this](int worker, const StepRange& range) { return undone(worker, range); }) {}

  std::vector<StepRange> undone(int worker, const StepRange& range) const {
    std::vector<StepRange> ranges;
    for (std::uint64_t step = range.first; step < std::min(range.end, total + 1); ++step)
      if (done[static_cast<std::size_t>(worker)].count(step) == 0)
        ranges.push_back({step, step + 1});
    return ranges;
  }
  /// A worker trains a batch, its own or another's.
  void train(int worker, std::uint64_t step) {
    EXPECT_TRUE(done[static_cast<std::size_t>(worker)].insert(step).second)
        << "step " << step << " of worker " << worker << " is trained twice";
  }
  void train_all(int worker, const StepRange& steps) {
    for (std::uint64_t step = steps.first; step < std::min(steps.end, total); ++step)
      train(worker, step);
  }
  bool all_done() const {
    for (const auto& steps : done)
      if (steps.size() != total) return false;
    return true;
  }

  const std::uint64_t total;
  std::vector<std::set<std::uint64_t>> done;
  BatchPool pool;
};

TEST(BatchPool, WithoutALostWorkerItIsOverWhenAllAreIdle) {
  Bench bench(2, 5);
  bench.train_all(0, {0, 5});
  bench.pool.idle(0, 5);
  EXPECT_FALSE(bench.pool.lease(0));
  EXPECT_FALSE(bench.pool.over());
  EXPECT_THROW(bench.pool.idle(0, 5), ProtocolError);
  bench.train_all(1, {0, 5});
  bench.pool.idle(1, 5);
  EXPECT_TRUE(bench.pool.over());
}

TEST(BatchPool, AnIdleWorkerGetsWhatALostOneHasLeft) {
  Bench bench(2, 20);
  bench.train_all(1, {0, 7});
  bench.pool.lose(1);
  EXPECT_FALSE(bench.pool.lease(0)) << "it trains";
  bench.train_all(0, {0, 20});
  bench.pool.idle(0, 20);
  while (const auto lease = bench.pool.lease(0)) {
    EXPECT_EQ(lease->worker, 1);
    EXPECT_LE(lease->steps.count(), BatchPool::most_leased);
    EXPECT_FALSE(bench.pool.over());
    bench.train_all(1, lease->steps);
    bench.pool.idle(0, 20);
  }
  EXPECT_TRUE(bench.all_done());
  EXPECT_TRUE(bench.pool.over());
  EXPECT_EQ(bench.pool.trained_by_others()[1][0], 13U);
  EXPECT_FALSE(bench.pool.come_back(1)) << "it is over";
}

/// Batches that the lessee has not finished return to the pool.
TEST(BatchPool, ALesseeMayBeLost) {
  Bench bench(3, 20);
  for (const int worker : {0, 1}) {
    bench.train_all(worker, {0, 20});
    bench.pool.idle(worker, 20);
  }
  bench.pool.lose(2);
  const auto lease = bench.pool.lease(0);
  ASSERT_TRUE(lease);
  ASSERT_GE(lease->steps.count(), 2U);
  bench.train(2, lease->steps.first);
  bench.pool.lose(0);
  EXPECT_EQ(bench.pool.trained_by_others()[2][0], 1U);
  while (const auto next = bench.pool.lease(1)) {
    bench.train_all(2, next->steps);
    bench.pool.idle(1, 20);
  }
  EXPECT_TRUE(bench.all_done());
  EXPECT_TRUE(bench.pool.over());
}

TEST(BatchPool, AReturningWorkerGoesOnWithWhatIsNeitherDoneNorLeased) {
  Bench bench(2, 20);
  bench.train_all(1, {0, 4});
  bench.pool.lose(1);
  auto steps = bench.pool.come_back(1);
  ASSERT_TRUE(steps);
  EXPECT_EQ(steps->first, 4U);
  EXPECT_EQ(steps->end, BatchPool::to_its_end) << "nobody has trained all yet";
  bench.train_all(1, {4, 6});
  bench.pool.lose(1);
  bench.train_all(0, {0, 20});
  bench.pool.idle(0, 20);
  const auto lease = bench.pool.lease(0);
  ASSERT_TRUE(lease);
  EXPECT_EQ(lease->steps.end, 20U) << "from the end";
  steps = bench.pool.come_back(1);
  ASSERT_TRUE(steps);
  EXPECT_EQ(steps->first, 6U);
  EXPECT_EQ(steps->end, lease->steps.first);
  EXPECT_FALSE(bench.pool.come_back(1)) << "it is back";
}

/// A server that knows how many steps there are leases what a worker has left as soon as another is
/// idle, though that one has fewer.
TEST(BatchPool, TheTotalMayBeKnown) {
  BatchPool pool(
      {{0, 4}, {0, BatchPool::to_its_end}},
      [&](int worker, const StepRange& range) {
        return worker == 0 ? std::vector<StepRange>() : std::vector<StepRange>{range};
      },
      10);
  pool.lose(1);
  const auto back = pool.come_back(1);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->first, 0U);
  EXPECT_EQ(back->end, 10U);
  pool.lose(1);
  pool.idle(0, 10);
  const auto lease = pool.lease(0);
  ASSERT_TRUE(lease);
  EXPECT_EQ(lease->worker, 1);
  EXPECT_EQ(lease->steps.end, 10U);
}

/// The server needs a moment to lose a worker. Meanwhile others are lost, too, and the batches that
/// they have left are for those that are there; and the run is not over before the moment is.
TEST(BatchPool, AWorkerThatIsBeingLostGetsNothing) {
  Bench bench(3, 20);
  for (const int worker : {0, 1}) {
    bench.train_all(worker, {0, 20});
    bench.pool.idle(worker, 20);
  }
  bench.pool.leave(1);
  bench.train_all(2, {0, 19});
  bench.pool.lose(2);
  EXPECT_FALSE(bench.pool.lease(1));
  EXPECT_THROW(bench.pool.idle(1, 20), ProtocolError);
  const auto lease = bench.pool.lease(0);
  ASSERT_TRUE(lease);
  bench.train_all(lease->worker, lease->steps);
  bench.pool.idle(0, 20);
  EXPECT_FALSE(bench.pool.over());
  bench.pool.lose(1);
  bench.pool.leave(1);
  EXPECT_TRUE(bench.pool.is_lost(1));
  EXPECT_TRUE(bench.pool.over());
}

TEST(BatchPool, ASignalLeavesTheRest) {
  Bench bench(2, 20);
  bench.train_all(0, {0, 20});
  bench.pool.idle(0, 20);
  bench.pool.lose(1);
  bench.pool.stop();
  EXPECT_FALSE(bench.pool.lease(0));
  EXPECT_TRUE(bench.pool.over());
}

/// Others have trained the steps 12 to 15 and 18 of worker 0, before the checkpoint.
TEST(BatchPool, WhatNobodyBeginsWithIsFree) {
  std::set<std::uint64_t> done{12, 13, 14, 15, 18};
  for (std::uint64_t step = 0; step < 5; ++step) done.insert(step);
  BatchPool pool({{5, 12}, {0, BatchPool::to_its_end}}, [&](int worker, const StepRange& range) {
    std::vector<StepRange> ranges;
    for (std::uint64_t step = range.first; step < range.end; ++step)
      if (worker == 1 || done.count(step) == 0) ranges.push_back({step, step + 1});
    return ranges;
  });
  pool.idle(0, 20);
  std::set<std::uint64_t> leased;
  while (const auto lease = pool.lease(0)) {
    EXPECT_EQ(lease->worker, 0);
    for (std::uint64_t step = lease->steps.first; step < lease->steps.end; ++step) {
      EXPECT_TRUE(leased.insert(step).second);
      done.insert(step);
    }
    pool.idle(0, 20);
  }
  EXPECT_EQ(leased, (std::set<std::uint64_t>{16, 17, 19}));
}

/// Workers are lost and come back at random moments: every batch is trained once, and the run ends.
TEST(BatchPool, EveryBatchIsTrainedOnce) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    constexpr int workers = 4;
    constexpr std::uint64_t total = 30;
    Bench bench(workers, total);
    struct Worker {
      bool lost = false, idle = false;
      int of = 0;
      StepRange steps{0, total};
    };
    std::vector<Worker> all(workers);
    for (int worker = 0; worker < workers; ++worker)
      all[static_cast<std::size_t>(worker)].of = worker;
    for (int round = 0; !bench.pool.over(); ++round) {
      ASSERT_LT(round, 100000) << "it does not end";
      const int number = static_cast<int>(random() % workers);
      Worker& worker = all[static_cast<std::size_t>(number)];
      if (worker.lost) {
        if (random() % 8 != 0) continue;
        const auto steps = bench.pool.come_back(number);
        ASSERT_TRUE(steps);
        worker = {false, false, number, {steps->first, std::min(steps->end, total)}};
      } else if (random() % 40 == 0) {
        bench.pool.lose(number);
        worker.lost = true;
      } else if (worker.idle) {
        const auto lease = bench.pool.lease(number);
        if (lease) worker = {false, false, lease->worker, lease->steps};
      } else if (worker.steps.count() == 0) {
        bench.pool.idle(number, total);
        worker.idle = true;
      } else {
        bench.train(worker.of, worker.steps.first++);
      }
    }
    EXPECT_TRUE(bench.all_done()) << seed;
  }
}

}  // namespace
}  // namespace duplex::net
