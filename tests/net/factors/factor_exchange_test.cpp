// Ranks that exchange the factors of some layers, beside dense parameters: all copies have the same
// bits, the weights are those of whole gradients but for rounding, a training goes on from a
// checkpoint, and frames that cannot be are refused.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <mutex>

#include "tests/net/cluster.h"
#include "tests/net/exchange/speaker.h"

namespace duplex::net {
namespace {

constexpr std::size_t outputs = 40, inputs = 90, classes = 10;
/// A dense parameter, and two linear layers.
const std::vector<std::size_t> sizes{5000, outputs* inputs, outputs, classes* outputs, classes};
const std::vector<FactoredLayer> layers{{1, 2, outputs, inputs, {}}, {3, 4, classes, outputs, {}}};
constexpr std::size_t chunk_bytes = 4096;

using Weights = std::vector<std::vector<float>>;

/// A worker with memory for factors. Its factors depend on worker, step and weights.
struct FactoredReplica : Replica {
  explicit FactoredReplica(std::size_t samples) : Replica(sizes), samples(samples) {
    for (const FactoredLayer& layer : layers)
      factors.emplace_back(samples * (layer.outputs + layer.inputs));
  }
  std::vector<Span> factored_spans() {
    std::vector<Span> all = spans();
    for (std::size_t i = 0; i < layers.size(); ++i) {
      all[layers[i].weights].gradient = all[layers[i].bias].gradient = nullptr;
      all[layers[i].weights].factors = factors[i].data();
    }
    return all;
  }
  void compute_factors(std::size_t layer, int worker, std::uint64_t step) {
    std::vector<float>& values = factors[layer];
    RandomStream(11, 100 * step + 10 * layer + static_cast<std::uint64_t>(worker))
        .fill_uniform(values.data(), values.size());
    const float weight = weights[layers[layer].weights][step];
    for (float& value : values) value = (value - 0.5F) * (1.0F + weight);
  }
  /// The gradient that the factors are of.
  void expand(std::size_t layer) {
    const FactoredLayer& shape = layers[layer];
    std::vector<float>& whole = gradients[shape.weights];
    std::fill(whole.begin(), whole.end(), 0.0F);
    std::fill(gradients[shape.bias].begin(), gradients[shape.bias].end(), 0.0F);
    const float* x = factors[layer].data() + samples * shape.outputs;
    for (std::size_t k = 0; k < samples; ++k)
      for (std::size_t r = 0; r < shape.outputs; ++r) {
        const float dy = factors[layer][k * shape.outputs + r];
        gradients[shape.bias][r] += dy;
        for (std::size_t i = 0; i < shape.inputs; ++i)
          whole[r * shape.inputs + i] += dy * x[k * shape.inputs + i];
      }
  }

  std::size_t samples;
  std::vector<std::vector<float>> factors;
};

void train_steps(ParameterExchange& exchange, FactoredReplica& replica, int worker,
                 std::uint64_t first, std::uint64_t steps, bool factored) {
  for (std::uint64_t step = first; step < steps; ++step) {
    exchange.begin(step);
    for (std::size_t p = 0; p < sizes.size(); ++p) exchange.await(p);
    for (std::size_t layer = layers.size(); layer-- > 0;) {
      replica.compute_factors(layer, worker, step);
      if (!factored) replica.expand(layer);
      exchange.push(layers[layer].weights);
      exchange.push(layers[layer].bias);
    }
    replica.compute(0, worker, step);
    exchange.push(0);
    exchange.end();
  }
}

OptimiserSpec momentum() {
  OptimiserSpec spec;
  spec.momentum = 0.9F;
  spec.weight_decay = 0.001F;
  return spec;
}

OptimiserSpec adam() {
  OptimiserSpec spec;
  spec.kind = OptimiserKind::adam;
  return spec;
}

struct Training {
  std::vector<std::size_t> samples{3, 3, 3};
  OptimiserSpec optimiser = momentum();
  WireFormat wire;
  bool weighted = false, factored = true;
  std::uint64_t first = 0, steps = 4;
  /// All that a checkpoint has of each chunk, by its number: written by owners at the end, and read
  /// where `first` is not 0.
  std::map<std::size_t, ChunkState>* checkpoint = nullptr;
};

/// Trains on as many ranks as there are samples. Returns each one's weights.
std::vector<Weights> trained(const Training& run) {
  const Topology topology{ServerMode::distributed, static_cast<int>(run.samples.size()), 0};
  std::vector<Weights> weights(run.samples.size());
  std::mutex mutex;
  const auto outcomes = run_ranks(topology, [&](int rank, const MeshSpec& mesh, Listener listener) {
    const auto own = static_cast<std::size_t>(rank);
    FactoredReplica replica(run.samples[own]);
    replica.set_initial();
    ExchangeSpec spec;
    spec.chunk_bytes = chunk_bytes;
    spec.optimiser = run.optimiser;
    spec.rate.base = 0.02;
    spec.wire = run.wire;
    spec.last_step = run.steps;
    spec.first_step = run.first;
    if (run.weighted)
      for (const std::size_t each : run.samples)
        spec.mean.samples.push_back(static_cast<std::int64_t>(each));
    if (run.factored) {
      spec.factored = layers;
      for (FactoredLayer& layer : spec.factored) layer.samples = run.samples;
    }
    const ShardMap map = topology.shard_map(sizes, Shards::even, chunk_bytes);
    if (run.first > 0) {
      for (std::size_t i = 0; i < map.chunks(); ++i)
        if (map[i].owner == rank)
          std::copy(run.checkpoint->at(i).weights.begin(), run.checkpoint->at(i).weights.end(),
                    replica.weights[map[i].parameter].begin() +
                        static_cast<std::ptrdiff_t>(map[i].offset));
      spec.initial_state = [&](std::size_t chunk, const std::vector<float*>& state) {
        const ChunkState& kept = run.checkpoint->at(chunk);
        for (std::size_t each = 0; each < state.size(); ++each)
          std::copy(kept.optimiser[each].begin(), kept.optimiser[each].end(), state[each]);
      };
    }
    ParameterExchange exchange(spec, run.factored ? replica.factored_spans() : replica.spans(),
                               Mesh::join(mesh, std::move(listener)));
    train_steps(exchange, replica, rank, run.first, run.steps, run.factored);
    exchange.await_last_weights();
    if (run.first == 0 && run.checkpoint != nullptr) {
      const std::lock_guard<std::mutex> lock(mutex);
      for (std::size_t i = 0; i < map.chunks(); ++i)
        if (map[i].owner == rank) {
          EXPECT_EQ(exchange.step_of(i), run.steps);
          (*run.checkpoint)[i] = exchange.state_of(i, run.steps).value();
        }
    }
    exchange.finish();
    weights[own] = replica.weights;
  });
  for (const Outcome& outcome : outcomes) EXPECT_TRUE(outcome.ok) << outcome.message;
  return weights;
}

bool same_bits(const Weights& a, const Weights& b) {
  for (std::size_t p = 0; p < a.size(); ++p)
    if (std::memcmp(a[p].data(), b[p].data(), a[p].size() * sizeof(float)) != 0) return false;
  return true;
}

void expect_near(const Weights& a, const Weights& b, float distance) {
  for (std::size_t p = 0; p < a.size(); ++p)
    for (std::size_t i = 0; i < a[p].size(); ++i)
      ASSERT_NEAR(a[p][i], b[p][i], distance) << p << ", " << i;
}

TEST(FactorExchange, TrainsAsWholeGradientsDo) {
  for (const OptimiserSpec& optimiser : {momentum(), adam()})
    for (const bool weighted : {false, true}) {
      Training run;
      run.optimiser = optimiser;
      run.weighted = weighted;
      if (weighted) run.samples = {2, 3, 4};
      const std::vector<Weights> factored = trained(run);
      for (const Weights& each : factored) EXPECT_TRUE(same_bits(each, factored[0]));
      run.factored = false;
      expect_near(factored[0], trained(run)[0], 2e-4F);
    }
}

TEST(FactorExchange, TwoRunsHaveTheSameBits) {
  const Training run;
  EXPECT_TRUE(same_bits(trained(run)[0], trained(run)[2]));
}

/// Factors cross the wire in the coding of gradients.
TEST(FactorExchange, LosslessFactorsChangeNothing) {
  Training run;
  const Weights plain = trained(run)[0];
  run.wire = {Coding::lossless, Coding::lossless};
  for (const Weights& each : trained(run)) EXPECT_TRUE(same_bits(each, plain));
}

/// Also where factors are rounded on the wire, every rank multiplies the same.
TEST(FactorExchange, RoundedFactorsAreThoseOfAllRanks) {
  Training run;
  const Weights plain = trained(run)[0];
  for (const Coding coding : {Coding::bf16, Coding::fp16}) {
    run.wire = {coding, coding};
    const std::vector<Weights> rounded = trained(run);
    for (const Weights& each : rounded) EXPECT_TRUE(same_bits(each, rounded[0]));
    expect_near(rounded[0], plain, 0.02F);
  }
}

TEST(FactorExchange, GoesOnFromACheckpointToTheSameBits) {
  for (const OptimiserSpec& optimiser : {momentum(), adam(), OptimiserSpec()}) {
    Training whole;
    whole.optimiser = optimiser;
    whole.steps = 6;
    std::map<std::size_t, ChunkState> checkpoint;
    Training first = whole;
    first.steps = 3;
    first.checkpoint = &checkpoint;
    trained(first);
    Training second = whole;
    second.first = 3;
    second.checkpoint = &checkpoint;
    const std::vector<Weights> ended = trained(second);
    const Weights due = trained(whole)[0];
    for (const Weights& each : ended) EXPECT_TRUE(same_bits(each, due));
  }
}

/// The other ranks exchange factors of a layer, and the last rank says what it should not.
void expect_refused_frame(const RawFrame& frame, const std::string& says) {
  Scene one;
  one.topology = {ServerMode::distributed, 2, 0};
  one.spec.factored = {{0, 1, 2, 3, {1, 1}}};  // Of 6 and 6 values; what matters is what comes.
  one.speak = [&](const Speaker& self) {
    self.say(frame);
    wait_for_the_end(self);
  };
  expect_refused(one, says);
}

TEST(FactorExchange, RefusesFramesThatCannotBe) {
  constexpr std::uint16_t factors = 32;
  const auto frame = [](std::uint16_t kind, std::uint32_t parameter, std::uint64_t step,
                        std::size_t values) {
    RawFrame made;
    made.kind = kind;
    made.parameter = parameter;
    made.step = step;
    made.payload.assign(values * sizeof(float), 0);
    return made;
  };
  expect_refused_frame(frame(factors, 2, 0, 5), "there are none of them");
  expect_refused_frame(frame(factors, 1, 0, 5), "there are none of them");
  expect_refused_frame(frame(factors, 99, 0, 5), "there are none of them");
  expect_refused_frame(frame(factors, 0, 0, 4), "16 bytes where 20 are due");
  expect_refused_frame(frame(factors, 0, 2, 5), "of step 2 where those of 0 are due");
  expect_refused_frame(frame(factors + 256, 0, 0, 5), "bf16 where float32 is due");
  RawFrame piece = frame(factors, 0, 0, 5);
  piece.chunk = 7;
  expect_refused_frame(piece, "there is no such piece");
  expect_refused_frame(frame(gradient, 0, 0, 6), "the layer's gradients are factors");
  // An optimiser's state is due after a checkpoint alone.
  expect_refused_frame(frame(weights, 3, 0, 6), "is not due");
}

TEST(FactorExchange, FactorsNeedARunThatHasSome) {
  Scene one;
  one.topology = {ServerMode::distributed, 2, 0};
  one.speak = [&](const Speaker& self) {
    RawFrame made;
    made.kind = 32;
    made.payload.assign(20, 0);
    self.say(made);
    wait_for_the_end(self);
  };
  expect_refused(one, "this run has none");
}

}  // namespace
}  // namespace duplex::net
