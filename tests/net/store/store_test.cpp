// A store without a socket: whatever the order in which gradients come, the weights have the same
// bits.
#include "net/store/join_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <thread>

#include "tests/net/store/store_data.h"

namespace duplex::net {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// A store of one chunk with one owner.
struct Bench {
  Bench(int workers, const OptimiserSpec& optimiser, std::size_t early_bytes = 1 << 20,
        int readers = 0)
      : map(ShardMap::central({count}, 0)),
        weights(initial()),
        store(map, 0, spec_of(workers, optimiser, early_bytes, readers), {weights.data()},
              [this](const Publication& made) {
                EXPECT_EQ(made.chunk, 0U);
                EXPECT_EQ(made.weights, weights.data());
                published = made.step;
                ++publications;
              }) {}
  void put(int worker, std::uint64_t step) {
    const std::vector<float> gradient = gradient_of(worker, step);
    float* to = store.reserve(0, worker, step, steady_clock::now() + milliseconds(5000));
    ASSERT_NE(to, nullptr);
    std::copy(gradient.begin(), gradient.end(), to);
    store.commit(0, worker);
  }

  ShardMap map;
  std::vector<float> weights;
  std::atomic<std::uint64_t> published{0};
  std::atomic<int> publications{0};
  JoinStore store;
};

/// The mean (3.12) and the update, written down directly.
std::vector<float> expected(int workers, std::uint64_t steps, const OptimiserSpec& optimiser) {
  std::vector<float> weights = initial();
  std::vector<float> velocity(count, 0.0F);
  float* state[] = {velocity.data()};
  for (std::uint64_t step = 0; step < steps; ++step) {
    std::vector<float> sum = gradient_of(0, step);
    for (int worker = 1; worker < workers; ++worker) {
      const std::vector<float> gradient = gradient_of(worker, step);
      for (std::size_t i = 0; i < count; ++i) sum[i] += gradient[i];
    }
    for (float& value : sum) value *= 1.0F / static_cast<float>(workers);
    update({optimiser, 0.01F, step + 1}, count, weights.data(), sum.data(), state);
  }
  return weights;
}

TEST(Store, SameBitsInEveryOrderOfArrival) {
  for (int workers = 1; workers <= 5; ++workers) {
    const std::vector<float> want = expected(workers, 2, momentum());
    std::vector<int> order(static_cast<std::size_t>(workers));
    std::iota(order.begin(), order.end(), 0);
    do {
      Bench bench(workers, momentum());
      for (std::uint64_t step = 0; step < 2; ++step) {
        for (const int worker : order) {
          EXPECT_EQ(bench.published, step);
          bench.put(worker, step);
        }
        EXPECT_EQ(bench.published, step + 1);
        std::reverse(order.begin(), order.end());
      }
      ASSERT_TRUE(same_bits(bench.weights, want)) << workers << " workers, first " << order[0];
    } while (std::next_permutation(order.begin(), order.end()));
  }
}

TEST(Store, TheSumOfOtherOrdersWouldDiffer) {
  // The test above can fail: float addition is not associative on these numbers.
  std::vector<float> a = gradient_of(0, 0), b = gradient_of(1, 0), c = gradient_of(2, 0);
  int different = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const float forward = (a[i] + b[i]) + c[i];
    const float backward = (c[i] + b[i]) + a[i];
    different += forward != backward ? 1 : 0;
  }
  EXPECT_GT(different, 50);
}

TEST(Store, AWorkersOwnGradientIsReadWhereItLies) {
  for (int workers = 1; workers <= 3; ++workers)
    for (int own = 0; own < workers; ++own)
      for (const bool first : {true, false}) {
        Bench bench(workers, momentum());
        for (std::uint64_t step = 0; step < 2; ++step) {
          const std::vector<float> mine = gradient_of(own, step);
          if (first) bench.store.submit(0, own, step, mine.data());
          for (int worker = workers; worker-- > 0;)
            if (worker != own) bench.put(worker, step);
          if (!first) bench.store.submit(0, own, step, mine.data());
          EXPECT_TRUE(same_bits(mine, gradient_of(own, step)));
          EXPECT_EQ(bench.published, step + 1);
        }
        EXPECT_TRUE(same_bits(bench.weights, expected(workers, 2, momentum())));
      }
}

TEST(Store, ManyThreadsManyChunks) {
  constexpr int workers = 4;
  constexpr std::uint64_t steps = 20;
  const ShardMap map = ShardMap::central({count}, 0, 512);
  std::vector<float> weights = initial();
  StoreSpec spec = spec_of(workers, momentum(), 2048);
  std::vector<std::atomic<std::uint64_t>> published(map.chunks());
  for (auto& step : published) step = 0;
  JoinStore store(map, 0, spec, {weights.data()},
                  [&](const Publication& made) { published[made.chunk] = made.step; });
  std::vector<std::thread> threads;
  threads.reserve(workers);
  for (int worker = 0; worker < workers; ++worker)
    threads.emplace_back([&, worker] {
      for (std::uint64_t step = 0; step < steps; ++step) {
        const std::vector<float> gradient = gradient_of(worker, step);
        for (std::size_t n = 0; n < map.chunks(); ++n) {
          const std::size_t chunk = (n + static_cast<std::size_t>(worker)) % map.chunks();
          while (published[chunk] < step) std::this_thread::yield();
          float* to = store.reserve(chunk, worker, step, steady_clock::now() + milliseconds(20000));
          ASSERT_NE(to, nullptr);
          std::copy_n(gradient.data() + map[chunk].offset, map[chunk].count, to);
          store.commit(chunk, worker);
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(same_bits(weights, expected(workers, steps, momentum())));
}

TEST(Store, SamplesWeighTheMean) {
  const ShardMap map = ShardMap::central({count}, 0);
  std::vector<float> weights = initial();
  StoreSpec spec = spec_of(3, {}, 1 << 20);
  spec.sync = Sync::split;
  spec.mean.samples = {3, 2, 2};
  const auto store = make_store(map, 0, spec, {weights.data()}, [](const Publication&) {});
  std::vector<std::vector<float>> gradients;
  for (int worker = 0; worker < 3; ++worker) gradients.push_back(gradient_of(worker, 0));
  for (int worker : {2, 0, 1})
    store->submit(0, worker, 0, gradients[static_cast<std::size_t>(worker)].data());
  const std::vector<float> before = initial();
  for (std::size_t i = 0; i < count; ++i) {
    const double mean = (3.0 * double{gradients[0][i]} + 2.0 * double{gradients[1][i]} +
                         2.0 * double{gradients[2][i]}) /
                        7.0;
    const double size = (std::abs(double{gradients[0][i]}) + std::abs(double{gradients[1][i]}) +
                         std::abs(double{gradients[2][i]}));
    EXPECT_NEAR(double{weights[i]}, double{before[i]} - 0.01 * mean, 1e-6 * (1.0 + size)) << i;
  }
}

/// A worker's gradient that is a sum over its slots counts for as many.
TEST(Store, SlotsCountInTheMean) {
  const ShardMap map = ShardMap::central({count}, 0);
  const std::vector<float> a = gradient_of(0, 0), b = gradient_of(1, 0), c = gradient_of(2, 0);
  std::vector<float> sum = a;
  for (std::size_t i = 0; i < count; ++i) sum[i] += b[i];
  const auto trained = [&](const MeanSpec& mean, const std::vector<const float*>& gradients) {
    std::vector<float> weights = initial();
    StoreSpec spec = spec_of(static_cast<int>(gradients.size()), momentum(), 1 << 20);
    spec.mean = mean;
    const auto store = make_store(map, 0, spec, {weights.data()}, [](const Publication&) {});
    for (std::size_t worker = 0; worker < gradients.size(); ++worker)
      store->submit(0, static_cast<int>(worker), 0, gradients[worker]);
    return weights;
  };
  EXPECT_TRUE(same_bits(trained({{}, {2, 1}}, {sum.data(), c.data()}),
                        trained({}, {a.data(), b.data(), c.data()})));
  // Slots of 4 samples beside one of 2.
  const MeanSpec uneven{{4, 2}, {2, 1}};
  EXPECT_EQ(uneven.total(2), 10);
  const std::vector<float> weights = trained(uneven, {sum.data(), c.data()});
  const std::vector<float> apart = trained({{4, 4, 2}, {}}, {a.data(), b.data(), c.data()});
  for (std::size_t i = 0; i < count; ++i)
    EXPECT_NEAR(weights[i], apart[i], 1e-6F * (1.0F + std::abs(apart[i]))) << i;
}

TEST(Store, AveragesWeights) {
  const ShardMap map = ShardMap::central({count}, 0);
  std::vector<float> weights = initial();
  StoreSpec spec = spec_of(2, momentum(), 1 << 20);
  spec.average = true;
  const auto store = make_store(map, 0, spec, {weights.data()}, [](const Publication&) {});
  const std::vector<float> a = gradient_of(0, 0), b = gradient_of(1, 0);
  store->submit(0, 1, 0, b.data());
  store->submit(0, 0, 0, a.data());
  for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(weights[i], (a[i] + b[i]) * 0.5F) << i;
}

TEST(Store, PublishesTogetherWhereAsked) {
  const ShardMap map = ShardMap::central({count}, 0, 1024);
  ASSERT_GT(map.chunks(), 2U);
  std::vector<float> weights = initial();
  StoreSpec spec = spec_of(1, {}, 0);
  spec.publish_together = true;
  std::vector<std::size_t> published;
  const auto store = make_store(map, 0, spec, {weights.data()},
                                [&](const Publication& made) { published.push_back(made.chunk); });
  const std::vector<float> gradient = gradient_of(0, 0);
  for (std::size_t chunk = map.chunks(); chunk-- > 1;)
    store->submit(chunk, 0, 0, gradient.data() + map[chunk].offset);
  EXPECT_TRUE(published.empty());
  store->submit(0, 0, 0, gradient.data());
  std::vector<std::size_t> all(map.chunks());
  std::iota(all.begin(), all.end(), 0U);
  EXPECT_EQ(published, all);
}

/// A worker may say goodbye, and have a snapshot taken, where all its gradients are answered.
TEST(Store, KnowsTheStepThatAllChunksAreOf) {
  const ShardMap map = ShardMap::central({count}, 0, 1024);
  std::vector<float> weights = initial();
  StoreSpec spec = spec_of(2, {}, 1 << 20);
  spec.publish_together = true;
  spec.first_step = 3;
  const auto store = make_store(map, 0, spec, {weights.data()}, [](const Publication&) {});
  const std::vector<float> gradient = gradient_of(0, 3);
  const auto submit = [&](std::size_t chunk, int worker, std::uint64_t step) {
    store->submit(chunk, worker, step, gradient.data() + map[chunk].offset);
  };
  EXPECT_EQ(store->common_step(0), 3U);
  submit(0, 0, 3);
  EXPECT_EQ(store->common_step(0), std::nullopt);
  EXPECT_EQ(store->common_step(1), 3U);
  submit(0, 1, 3);
  EXPECT_EQ(store->common_step(0), std::nullopt);  // Chunk 0 is further than the others.
  EXPECT_FALSE(store->owes_nothing(0));
  // Its weights are published with the others, and no gradient of them can be here before.
  EXPECT_THROW(store->reserve(0, 0, 4, {}), ProtocolError);
  for (std::size_t chunk = 1; chunk < map.chunks(); ++chunk)
    for (const int worker : {0, 1}) submit(chunk, worker, 3);
  EXPECT_EQ(store->common_step(0), 4U);
  EXPECT_TRUE(store->owes_nothing(0));
  submit(0, 1, 4);
  EXPECT_EQ(store->common_step(0), 4U);
  EXPECT_FALSE(store->owes_nothing(1));
}

TEST(Store, RefusesWhatIsNotDue) {
  Bench bench(2, {});
  const auto soon = steady_clock::now() + milliseconds(1000);
  EXPECT_THROW(bench.store.reserve(0, 0, 1, soon), ProtocolError);
  bench.put(0, 0);
  EXPECT_THROW(bench.store.reserve(0, 0, 0, soon), ProtocolError);
  bench.put(1, 0);
  EXPECT_THROW(bench.store.reserve(0, 1, 0, soon), ProtocolError);
  EXPECT_EQ(bench.publications, 1);
  const ShardMap elsewhere = ShardMap::central({count}, 1);
  JoinStore store(elsewhere, 0, spec_of(1, {}, 0), {bench.weights.data()}, nullptr);
  EXPECT_THROW(store.reserve(0, 0, 0, soon), ProtocolError);
}

TEST(Store, EarlyGradientsWaitForRoomOrTheirTurn) {
  Bench bench(3, {}, count * sizeof(float));
  bench.put(2, 0);  // It takes all the room there is.
  EXPECT_EQ(bench.store.reserve(0, 1, 0, steady_clock::now() + milliseconds(20)), nullptr);

  Bench other(3, {}, count * sizeof(float));
  other.put(2, 0);
  std::thread late([&] { other.put(1, 0); });
  // Worker 0's turn needs no room. After it comes the turn of 1, and after both that of 2.
  other.put(0, 0);
  late.join();
  EXPECT_EQ(other.published, 1U);
  EXPECT_TRUE(same_bits(other.weights, expected(3, 1, {})));
}

TEST(Store, StopEndsWaiting) {
  Bench bench(2, {}, 0);
  std::thread waiting([&] {
    EXPECT_EQ(bench.store.reserve(0, 1, 0, steady_clock::now() + milliseconds(60000)), nullptr);
  });
  bench.store.stop();
  waiting.join();
}

TEST(Store, NoUpdateWhileWeightsAreStillSent) {
  Bench bench(1, {}, 0, 2);
  bench.store.publish_initial();
  const std::vector<float> gradient = gradient_of(0, 0);
  const std::vector<float> before = bench.weights;
  bench.store.submit(0, 0, 0, gradient.data());
  EXPECT_TRUE(same_bits(bench.weights, before));
  bench.store.sent(0);
  EXPECT_EQ(bench.published, 0U);
  bench.store.sent(0);
  EXPECT_EQ(bench.published, 1U);
  EXPECT_TRUE(same_bits(bench.weights, expected(1, 1, {})));
}

TEST(Store, SaysWhoseGradientIsOverdue) {
  Bench bench(3, {});
  EXPECT_FALSE(bench.store.overdue(milliseconds(0)));
  bench.put(1, 0);
  EXPECT_FALSE(bench.store.overdue(milliseconds(60000)));
  std::this_thread::sleep_for(milliseconds(2));
  const auto overdue = bench.store.overdue(milliseconds(1));
  ASSERT_TRUE(overdue);
  EXPECT_EQ(overdue->missing, (std::vector<int>{0, 2}));
  EXPECT_EQ(overdue->step, 0U);
  EXPECT_GE(overdue->seconds, 0.001);
}

TEST(Store, UnknownRuleListsTheKnown) {
  for (const Sync sync : {Sync::join, Sync::split, Sync::none})
    EXPECT_EQ(parse_sync(name_of(sync)), sync);
  EXPECT_THROW(parse_sync("joined"), Error);
}

/// The first of three workers does not train with the parameter.
TEST(Store, AddsTheGradientsOfMembersAlone) {
  const ShardMap map = ShardMap::among({count}, {{1, 2}}, 3);
  const int owner = map[0].owner;
  std::vector<float> weights = initial();
  StoreSpec spec = spec_of(3, momentum(), 1 << 20);
  spec.own = owner;
  spec.mean.sum = true;
  std::uint64_t published = 0;
  JoinStore store(map, owner, spec, {weights.data()},
                  [&](const Publication& made) { published = made.step; });
  const auto put = [&](int worker, std::uint64_t step) {
    const std::vector<float> gradient = gradient_of(worker, step);
    float* to = store.reserve(0, worker, step, steady_clock::now() + milliseconds(5000));
    std::copy(gradient.begin(), gradient.end(), to);
    store.commit(0, worker);
  };
  EXPECT_THROW(put(0, 0), ProtocolError);
  std::vector<float> want = initial(), velocity(count, 0.0F);
  float* state[] = {velocity.data()};
  for (std::uint64_t step = 0; step < 2; ++step) {
    put(2, step);
    EXPECT_EQ(published, step);
    put(1, step);
    EXPECT_EQ(published, step + 1);
    std::vector<float> sum = gradient_of(1, step);
    const std::vector<float> second = gradient_of(2, step);
    for (std::size_t i = 0; i < count; ++i) sum[i] += second[i];
    update({momentum(), 0.01F, step + 1}, count, want.data(), sum.data(), state);
  }
  EXPECT_TRUE(same_bits(weights, want));
  EXPECT_TRUE(store.answered(0));
}

}  // namespace
}  // namespace duplex::net
