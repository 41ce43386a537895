// An asynchronous store without a socket: every gradient is applied when it comes.
#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <utility>

#include "tests/net/store/store_data.h"

namespace duplex::net {
namespace {

TEST(AsyncStore, AnswersAWorkersWholeGradientWhereAsked) {
  const ShardMap map = ShardMap::central({count}, 0, 1024);
  std::vector<float> weights = initial();
  StoreSpec spec = spec_of(2, {}, 0);
  spec.sync = Sync::none;
  spec.publish_together = true;
  std::vector<std::pair<std::size_t, int>> published;
  std::vector<float> read(count);
  std::unique_ptr<Store> store;
  store = make_store(map, 0, spec, {weights.data()}, [&](const Publication& made) {
    published.emplace_back(made.chunk, made.worker);
    store->read(made.chunk, made.worker, read.data());
  });
  store->publish_initial();
  published.clear();
  const std::vector<float> gradient = gradient_of(0, 0);
  const auto submit = [&](std::size_t chunk, int worker) {
    store->submit(chunk, worker, 0, gradient.data() + map[chunk].offset);
  };
  for (std::size_t chunk = map.chunks(); chunk-- > 1;) submit(chunk, 0);
  submit(0, 1);  // Another worker's gradient does not complete worker 0's.
  EXPECT_TRUE(published.empty());
  // Weights of step 1 have been given for no chunk.
  EXPECT_THROW(store->reserve(1, 0, 1, {}), ProtocolError);
  EXPECT_THROW(store->done(0, false), ProtocolError);
  EXPECT_FALSE(store->owes_nothing(0));
  submit(0, 0);
  std::vector<std::pair<std::size_t, int>> all;
  for (std::size_t chunk = 0; chunk < map.chunks(); ++chunk) all.emplace_back(chunk, 0);
  EXPECT_EQ(published, all);
}

/// An asynchronous store of one chunk, and its publications as (worker, step). Each worker reads
/// its weights as soon as they are published, unless told otherwise.
struct AsyncBench {
  explicit AsyncBench(int workers, int own = -1)
      : map(ShardMap::central({count}, 0)), weights(initial()) {
    StoreSpec spec = spec_of(workers, momentum(), 0);
    spec.sync = Sync::none;
    spec.own = own;
    store = make_store(map, 0, spec, {weights.data()}, [this](const Publication& made) {
      const std::lock_guard<std::mutex> lock(mutex);
      published.emplace_back(made.worker, made.step);
      if (reads) read(made.worker);
    });
    store->publish_initial();
    published.clear();
  }
  std::vector<float> read(int worker) {
    std::vector<float> values(count);
    store->read(0, worker, values.data());
    return values;
  }
  ShardMap map;
  std::vector<float> weights;
  bool reads = true;
  std::mutex mutex;
  std::vector<std::pair<int, std::uint64_t>> published;
  std::unique_ptr<Store> store;
};

TEST(AsyncStore, AppliesEveryGradientOnceInTheOrderOfArrival) {
  AsyncBench bench(2);
  std::vector<float> expected = initial(), velocity(count, 0.0F);
  float* state[] = {velocity.data()};
  const std::vector<std::pair<int, std::uint64_t>> order{{1, 0}, {1, 1}, {0, 0}, {1, 2}, {0, 1}};
  std::uint64_t number = 0;
  for (const auto& [worker, step] : order) {
    const std::vector<float> gradient = gradient_of(worker, step);
    bench.store->submit(0, worker, step, gradient.data());
    update({momentum(), 0.01F, ++number}, count, expected.data(), gradient.data(), state);
    EXPECT_EQ(bench.published.back(), std::make_pair(worker, step + 1));
    EXPECT_THROW(bench.store->reserve(0, worker, step, {}), ProtocolError);
    EXPECT_THROW(bench.store->reserve(0, worker, step + 2, {}), ProtocolError);
  }
  EXPECT_TRUE(same_bits(bench.read(0), expected));
  EXPECT_TRUE(same_bits(bench.weights, initial()));  // The worker's own weights stay as they are.
}

TEST(AsyncStore, AGradientIsOfWeightsThatItsWorkerWasGiven) {
  AsyncBench bench(1);
  const std::vector<float> gradient = gradient_of(0, 0);
  bench.reads = false;
  bench.store->submit(0, 0, 0, gradient.data());
  EXPECT_THROW(bench.store->submit(0, 0, 1, gradient.data()), ProtocolError);
  EXPECT_THROW(bench.store->done(0, false), ProtocolError);
  bench.read(0);
  bench.store->submit(0, 0, 1, gradient.data());
  bench.read(0);
  EXPECT_FALSE(bench.store->owes_nothing(0));
  EXPECT_TRUE(bench.store->done(0, false));
  EXPECT_FALSE(bench.store->owes_nothing(0));
  bench.store->publish_last();
  EXPECT_FALSE(bench.store->owes_nothing(0));
  bench.read(0);
  EXPECT_TRUE(bench.store->owes_nothing(0));
}

TEST(AsyncStore, CountsStaleness) {
  AsyncBench bench(2);
  bench.reads = false;
  const std::vector<float> gradient = gradient_of(0, 0);
  bench.read(0);
  bench.read(1);
  bench.store->submit(0, 0, 0, gradient.data());  // No update came between.
  bench.read(0);
  bench.store->submit(0, 0, 1, gradient.data());
  bench.store->submit(0, 1, 0, gradient.data());  // Two updates by worker 0 did.
  std::vector<std::uint64_t> sums;
  for (const Store::Staleness& entry : bench.store->staleness()) sums.push_back(entry.sum);
  EXPECT_EQ(sums, (std::vector<std::uint64_t>{0, 0, 2}));
}

TEST(AsyncStore, EndsWithTheSameWeightsForAllThatAreLeft) {
  AsyncBench bench(3);
  const std::vector<float> gradient = gradient_of(0, 0);
  bench.store->submit(0, 0, 0, gradient.data());
  bench.published.clear();
  EXPECT_FALSE(bench.store->done(0, false));
  EXPECT_THROW(bench.store->reserve(0, 0, 1, {}), ProtocolError);
  EXPECT_THROW(bench.store->done(0, false), ProtocolError);
  EXPECT_FALSE(bench.store->done(1, true));
  EXPECT_TRUE(bench.store->done(2, false));
  EXPECT_TRUE(bench.published.empty());
  bench.store->publish_last();
  EXPECT_EQ(bench.published, (std::vector<std::pair<int, std::uint64_t>>{{0, 2}, {2, 1}}));
}

/// Chunk 1 has worker 0's step 5 already: that gradient is answered, and not applied again.
TEST(AsyncStore, GoesOnFromWhatEachChunkHas) {
  const ShardMap map = ShardMap::central({count}, 0, count * sizeof(float) / 2);
  ASSERT_EQ(map.chunks(), 2U);
  std::vector<float> weights = initial();
  StoreSpec spec = spec_of(2, momentum(), 0);
  spec.sync = Sync::none;
  spec.first_steps = {5, 3};
  spec.records = {{8, {AppliedSteps(5), AppliedSteps(3)}}, {9, {AppliedSteps(6), AppliedSteps(3)}}};
  spec.staleness_before = {{4, 0, 2, 1, 1}};
  std::vector<std::pair<int, std::uint64_t>> published;
  std::vector<float> read(count);
  std::unique_ptr<Store> store;
  store = make_store(map, 0, spec, {weights.data()}, [&](const Publication& made) {
    published.emplace_back(made.worker, made.step);
    store->read(made.chunk, made.worker, read.data());
  });
  store->publish_initial();
  EXPECT_EQ(published,
            (std::vector<std::pair<int, std::uint64_t>>{{0, 5}, {1, 3}, {0, 5}, {1, 3}}));
  published.clear();
  const std::vector<float> gradient = gradient_of(0, 5);
  EXPECT_THROW(store->reserve(0, 0, 4, {}), ProtocolError);
  for (const std::size_t chunk : {0U, 1U})
    store->submit(chunk, 0, 5, gradient.data() + map[chunk].offset);
  EXPECT_EQ(published, (std::vector<std::pair<int, std::uint64_t>>{{0, 6}, {0, 6}}));
  const auto first = store->state(0, 0), second = store->state(1, 0);
  EXPECT_EQ(first->step, 9U);
  EXPECT_EQ(second->step, 9U) << "nothing was applied";
  EXPECT_EQ(first->applied, second->applied);
  std::vector<float> expected = initial(), velocity(count, 0.0F);
  float* state[] = {velocity.data()};
  update({momentum(), 0.01F, 9}, map[0].count, expected.data(), gradient.data(), state);
  EXPECT_TRUE(
      same_bits(first->weights,
                {expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(map[0].count)}));
  EXPECT_TRUE(
      same_bits(second->weights,
                {expected.begin() + static_cast<std::ptrdiff_t>(map[1].offset), expected.end()}));
  std::vector<std::uint64_t> chunks;
  for (const Staleness& entry : store->staleness())
    if (entry.worker == 0) chunks.push_back(entry.chunks);
  EXPECT_EQ(chunks, (std::vector<std::uint64_t>{0, 0, 0, 0, 2, 1}));
}

/// Worker 0 has pushed two gradients and is lost; worker 1 trains its third in its place, and
/// worker 0 comes back for the fourth.
TEST(AsyncStore, AnotherWorkerPushesInTheLostOnesPlace) {
  AsyncBench bench(2);
  const auto push = [&](int worker, std::uint64_t step, std::uint64_t of) {
    const std::vector<float> gradient = gradient_of(0, of);
    bench.store->submit(0, worker, step, gradient.data());
  };
  push(0, 0, 0);
  push(0, 1, 1);
  bench.store->done(0, true);
  push(1, 0, 9);
  bench.store->done(1, false);
  EXPECT_EQ(bench.store->undone(0, {0, 5}).size(), 1U);
  EXPECT_EQ(bench.store->undone(0, {0, 5}).front().first, 2U);
  bench.store->assign(1, {0, {2, 3}});
  EXPECT_THROW(bench.store->reserve(0, 1, 2, {}), ProtocolError) << "under steps of its own";
  push(1, 1, 2);
  EXPECT_EQ(bench.published.back(), std::make_pair(1, std::uint64_t{2}));
  EXPECT_EQ(bench.store->undone(0, {0, 5}).front().first, 3U);
  EXPECT_TRUE(bench.store->undone(0, {0, 3}).empty());
  bench.published.clear();
  bench.store->begin_again(0, 3);
  EXPECT_EQ(bench.published, (std::vector<std::pair<int, std::uint64_t>>{{0, 3}}));
  push(0, 3, 3);
  const auto state = bench.store->state(0, 0);
  EXPECT_EQ(state->step, 5U);
  EXPECT_EQ(state->applied[0].text(), "4");
  EXPECT_EQ(state->applied[1].text(), "1");
}

/// The own worker says goodbye when it has its last weights, so nobody's may come after them.
TEST(AsyncStore, GivesItsOwnWorkerTheLastWeightsLast) {
  AsyncBench bench(3, 0);
  for (const int worker : {1, 0, 2}) bench.store->done(worker, false);
  bench.store->publish_last();
  EXPECT_EQ(bench.published, (std::vector<std::pair<int, std::uint64_t>>{{1, 1}, {2, 1}, {0, 1}}));
}

}  // namespace
}  // namespace duplex::net
