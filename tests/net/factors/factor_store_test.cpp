// Tests the store of factors: what it makes of them against a join store that is given the same
// gradients as a whole, that all ranks have the same bits whatever order pieces come in, and pieces
// that are not due.
#include "net/factors/factor_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "core/error.h"
#include "core/random.h"
#include "net/wire/frame.h"

namespace duplex::net {
namespace {

constexpr std::size_t outputs = 50, inputs = 37;
constexpr std::size_t piece_bytes = 1000;

FactorMap map_of(const std::vector<std::size_t>& samples) {
  return FactorMap({{0, 1, outputs, inputs, samples}, {2, 3, inputs, outputs, samples}},
                   piece_bytes);
}

std::vector<float> drawn(std::size_t count, std::uint64_t stream) {
  std::vector<float> values(count);
  RandomStream(7, stream).fill_uniform(values.data(), count);
  for (float& value : values) value -= 0.5F;
  return values;
}

/// The factors of a worker of a step, the same on all ranks.
std::vector<float> factors_of(const FactorMap& map, std::size_t layer, int worker,
                              std::uint64_t step) {
  return drawn(map.values(layer, worker),
               1000 * step + 10 * layer + static_cast<std::uint64_t>(worker));
}

/// A rank's weights and store.
class Rank {
 public:
  Rank(const FactorMap& map, FactorStoreSpec spec) : map_(map), own_(spec.own) {
    for (const std::size_t count : {outputs * inputs, outputs, inputs * outputs, inputs}) {
      weights_.push_back(drawn(count, 100 + weights_.size()));
      Span& span = spans_.emplace_back();
      span.name = "p" + std::to_string(spans_.size());
      span.count = count;
      span.weights = weights_.back().data();
    }
    for (std::size_t layer = 0; layer < 2; ++layer) {
      factors_.emplace_back(map.values(layer, spec.own));
      spans_[2 * layer].factors = factors_.back().data();
    }
    spec.updated = [this](std::size_t, std::uint64_t, std::int64_t, std::int64_t) {
      const std::lock_guard<std::mutex> lock(mutex_);
      ++updates_;
      changed_.notify_all();
    };
    spec.failed = [](const std::exception_ptr&) { ADD_FAILURE() << "an update threw"; };
    store_ = std::make_unique<FactorStore>(map, std::move(spec), spans_);
    store_->start();
  }

  FactorStore& store() { return *store_; }
  const std::vector<std::vector<float>>& weights() const { return weights_; }

  void submit(std::size_t layer, std::uint64_t step) {
    const std::vector<float> own = factors_of(map_, layer, own_, step);
    std::copy(own.begin(), own.end(), factors_[layer].begin());
    store_->submit(layer, step);
  }
  void receive(std::size_t layer, int worker, std::uint32_t piece, std::uint64_t step) {
    float* to = store_->reserve(layer, worker, piece, step);
    ASSERT_NE(to, nullptr);
    const Chunk& part = map_.pieces(layer, worker)[piece];
    const std::vector<float> all = factors_of(map_, layer, worker, step);
    std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(part.offset), part.count, to);
    store_->commit(layer, worker, piece, step);
  }
  /// Hands over all factors of a step in an order that `seed` draws, and waits for the updates.
  void step(std::uint64_t step, std::uint32_t seed) {
    std::vector<std::tuple<std::size_t, int, std::uint32_t>> pieces;
    for (std::size_t layer = 0; layer < 2; ++layer)
      for (int worker = 0; worker < static_cast<int>(map_.workers()); ++worker) {
        const std::size_t count = worker == own_ ? 1 : map_.pieces(layer, worker).size();
        for (std::size_t piece = 0; piece < count; ++piece)
          pieces.emplace_back(layer, worker, static_cast<std::uint32_t>(piece));
      }
    std::shuffle(pieces.begin(), pieces.end(), std::mt19937(seed));
    for (const auto& [layer, worker, piece] : pieces) {
      if (worker == own_)
        submit(layer, step);
      else
        receive(layer, worker, piece, step);
    }
    await(2 * (step + 1));
  }
  void await(std::size_t updates) {
    std::unique_lock<std::mutex> lock(mutex_);
    ASSERT_TRUE(
        changed_.wait_for(lock, std::chrono::seconds(30), [&] { return updates_ >= updates; }));
  }

 private:
  const FactorMap& map_;
  const int own_;
  std::vector<std::vector<float>> weights_, factors_;
  std::vector<Span> spans_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t updates_ = 0;
  std::unique_ptr<FactorStore> store_;
};

OptimiserSpec momentum() {
  OptimiserSpec spec;
  spec.momentum = 0.9F;
  spec.nesterov = true;
  spec.weight_decay = 0.01F;
  return spec;
}

OptimiserSpec adam() {
  OptimiserSpec spec;
  spec.kind = OptimiserKind::adam;
  return spec;
}

FactorStoreSpec spec_of(int own, const OptimiserSpec& optimiser) {
  FactorStoreSpec spec;
  spec.own = own;
  spec.optimiser = optimiser;
  spec.rate.base = 0.05;
  return spec;
}

bool same_bits(const std::vector<std::vector<float>>& a, const std::vector<std::vector<float>>& b) {
  for (std::size_t p = 0; p < a.size(); ++p)
    if (std::memcmp(a[p].data(), b[p].data(), a[p].size() * sizeof(float)) != 0) return false;
  return true;
}

/// Returns the weights of the same training by gradients in double precision.
std::vector<std::vector<float>> expected(const FactorMap& map, const OptimiserSpec& optimiser,
                                         const std::vector<double>& parts, std::uint64_t steps,
                                         std::vector<std::vector<float>> weights) {
  std::vector<std::vector<std::vector<float>>> state(weights.size());
  for (std::size_t p = 0; p < weights.size(); ++p)
    state[p].assign(static_cast<std::size_t>(optimiser.states()),
                    std::vector<float>(weights[p].size()));
  for (std::uint64_t step = 0; step < steps; ++step)
    for (std::size_t layer = 0; layer < 2; ++layer) {
      const FactoredLayer& shape = map.layers()[layer];
      std::vector<double> sums(shape.outputs * shape.inputs), bias(shape.outputs);
      for (std::size_t worker = 0; worker < map.workers(); ++worker) {
        const std::vector<float> factors = factors_of(map, layer, static_cast<int>(worker), step);
        const std::size_t samples = map.samples(0, static_cast<int>(worker));
        const float* x = factors.data() + samples * shape.outputs;
        for (std::size_t k = 0; k < samples; ++k)
          for (std::size_t r = 0; r < shape.outputs; ++r) {
            const double dy = parts[worker] * double{factors[k * shape.outputs + r]};
            bias[r] += dy;
            for (std::size_t i = 0; i < shape.inputs; ++i)
              sums[r * shape.inputs + i] += dy * double{x[k * shape.inputs + i]};
          }
      }
      for (const auto& [parameter, gradient] :
           {std::pair(shape.weights, &sums), std::pair(shape.bias, &bias)}) {
        const std::vector<float> rounded(gradient->begin(), gradient->end());
        std::vector<float*> pointers;
        for (std::vector<float>& each : state[parameter]) pointers.push_back(each.data());
        update({optimiser, 0.05F, step + 1}, rounded.size(), weights[parameter].data(),
               rounded.data(), pointers.data());
      }
    }
  return weights;
}

TEST(FactorStore, TrainsAsWholeGradientsDo) {
  const FactorMap map = map_of({4, 3, 5});
  for (const OptimiserSpec& optimiser : {OptimiserSpec(), momentum(), adam()}) {
    for (const bool weighted : {false, true}) {
      FactorStoreSpec spec = spec_of(1, optimiser);
      if (weighted) spec.mean.samples = {4, 3, 5};
      const std::vector<double> parts = weighted ? std::vector<double>{4.0 / 12, 3.0 / 12, 5.0 / 12}
                                                 : std::vector<double>(3, 1.0 / 3);
      Rank rank(map, spec);
      const auto due = expected(map, optimiser, parts, 3, rank.weights());
      for (std::uint64_t step = 0; step < 3; ++step) rank.step(step, 1);
      for (std::size_t p = 0; p < due.size(); ++p)
        for (std::size_t i = 0; i < due[p].size(); ++i)
          ASSERT_NEAR(rank.weights()[p][i], due[p][i], 1e-4) << p << ", " << i;
    }
  }
}

TEST(FactorStore, AllRanksHaveTheSameBits) {
  const FactorMap map = map_of({4, 3, 5});
  Rank first(map, spec_of(0, momentum()));
  for (std::uint64_t step = 0; step < 4; ++step) first.step(step, 1);
  for (int own = 0; own < 3; ++own)
    for (const int threads : {1, 3}) {
      FactorStoreSpec spec = spec_of(own, momentum());
      spec.threads = threads;
      Rank rank(map, spec);
      for (std::uint64_t step = 0; step < 4; ++step)
        rank.step(step, static_cast<std::uint32_t>(10 * own) + static_cast<std::uint32_t>(step));
      EXPECT_TRUE(same_bits(rank.weights(), first.weights())) << own << ", " << threads;
    }
}

/// A worker may be a step ahead, not two, and sends every piece once.
TEST(FactorStore, RefusesPiecesThatAreNotDue) {
  const FactorMap map = map_of({4, 3, 5});
  Rank rank(map, spec_of(0, momentum()));
  rank.receive(0, 1, 0, 0);
  EXPECT_THROW(rank.store().reserve(0, 1, 0, 0), ProtocolError);
  EXPECT_NE(rank.store().reserve(0, 1, 0, 1), nullptr);
  EXPECT_THROW(rank.store().reserve(0, 1, 0, 2), ProtocolError);
  EXPECT_THROW(rank.store().reserve(0, 1, 99, 0), ProtocolError);
  rank.store().stop();
  EXPECT_EQ(rank.store().reserve(0, 1, 1, 0), nullptr);
}

TEST(FactorStore, GivesTheStateOfAStepAndOfTheOneBefore) {
  const FactorMap map = map_of({2, 2});
  FactorStoreSpec spec = spec_of(0, momentum());
  Chunk chunk;
  chunk.parameter = 2;
  chunk.offset = 5;
  chunk.count = 20;
  spec.kept = {chunk};
  Rank rank(map, spec);
  rank.step(0, 1);
  const auto one = rank.store().state_of(chunk, 1);
  ASSERT_TRUE(one);
  EXPECT_EQ(0, std::memcmp(one->weights.data(), rank.weights()[2].data() + 5, 20 * sizeof(float)));
  EXPECT_EQ(one->optimiser.size(), 1U);
  rank.step(1, 1);
  const auto kept = rank.store().state_of(chunk, 1);
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->weights, one->weights);
  EXPECT_EQ(kept->optimiser, one->optimiser);
  EXPECT_FALSE(rank.store().state_of(chunk, 0));
}

TEST(FactorStore, NamesTheWorkerThatIsMissing) {
  const FactorMap map = map_of({2, 2, 2});
  Rank rank(map, spec_of(0, momentum()));
  EXPECT_FALSE(rank.store().overdue(std::chrono::seconds(0)));
  rank.submit(0, 0);
  const auto none_came = rank.store().overdue(std::chrono::seconds(0));
  ASSERT_TRUE(none_came);
  EXPECT_EQ(none_came->missing, (std::vector<int>{1, 2}));
  for (std::uint32_t piece = 0; piece < map.pieces(0, 1).size(); ++piece)
    rank.receive(0, 1, piece, 0);
  const auto overdue = rank.store().overdue(std::chrono::seconds(0));
  ASSERT_TRUE(overdue);
  EXPECT_EQ(overdue->missing, std::vector<int>{2});
  EXPECT_EQ(overdue->step, 0U);
}

}  // namespace
}  // namespace duplex::net
