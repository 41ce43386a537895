// Exchanges whose values cross the wire packed or in 16 bits: what every rank trains is computed
// here from the codings and the update's equation, to the bit.
#include <gtest/gtest.h>

#include <cstring>
#include <sstream>

#include "net/coding/coding.h"
#include "tests/net/cluster.h"
#include "tests/net/exchange/speaker.h"

namespace duplex::net {
namespace {

using Weights = std::vector<std::vector<float>>;

const std::vector<std::size_t> sizes{1728, 64, 70000, 1, 33333, 10};
constexpr std::size_t chunk_bytes = 65536;

OptimiserSpec momentum() {
  OptimiserSpec spec;
  spec.momentum = 0.9F;
  return spec;
}

struct Case {
  Topology topology;
  WireFormat wire;
};

/// Turns a chunk's values into those that another rank gets.
void through_wire(Coding coding, std::vector<float>& values, const Chunk& chunk) {
  if (is_exact(coding)) return;
  std::vector<std::uint8_t> bytes(coded_bytes(coding, chunk.count) + coding_slack);
  const std::size_t size = encode(coding, values.data() + chunk.offset, chunk.count, bytes.data());
  decode(coding, Values::gradient, bytes.data(), size, chunk.count, values.data() + chunk.offset);
}

/// The owners' weights after so many steps.
Weights expected(const Case& c, std::uint64_t steps, const OptimiserSpec& optimiser,
                 const LearningRate& rate) {
  const ShardMap map = c.topology.shard_map(sizes, Shards::even, chunk_bytes);
  Replica owners(sizes);
  owners.set_initial();
  std::vector<std::vector<float>> state;
  for (const std::size_t count : sizes) state.emplace_back(count, 0.0F);
  const auto of_others = [&](std::size_t p, int rank, const auto& visit) {
    for (std::size_t i = map.first(p); i < map.first(p + 1); ++i)
      if (map[i].owner != rank) visit(map[i]);
  };
  const std::vector<int> workers = c.topology.workers();
  for (std::uint64_t step = 0; step < steps; ++step)
    for (std::size_t p = 0; p < sizes.size(); ++p) {
      std::vector<float> sum(sizes[p]);
      for (std::size_t worker = 0; worker < workers.size(); ++worker) {
        Replica own(sizes);
        own.weights[p] = owners.weights[p];
        of_others(p, workers[worker],
                  [&](const Chunk& chunk) { through_wire(c.wire.weights, own.weights[p], chunk); });
        own.compute(p, static_cast<int>(worker), step);
        of_others(p, workers[worker], [&](const Chunk& chunk) {
          through_wire(c.wire.gradients, own.gradients[p], chunk);
        });
        for (std::size_t i = 0; i < sizes[p]; ++i)
          sum[i] = worker == 0 ? own.gradients[p][i] : sum[i] + own.gradients[p][i];
      }
      for (float& value : sum) value *= 1.0F / static_cast<float>(workers.size());
      float* const states[] = {state[p].data()};
      update({optimiser, rate.at(step), step + 1}, sizes[p], owners.weights[p].data(), sum.data(),
             states);
    }
  return owners.weights;
}

bool same_bits(const Weights& a, const Weights& b) {
  for (std::size_t p = 0; p < a.size(); ++p)
    if (std::memcmp(a[p].data(), b[p].data(), a[p].size() * sizeof(float)) != 0) return false;
  return true;
}

ExchangeSpec spec_of(const Case& c, std::uint64_t steps) {
  ExchangeSpec spec;
  spec.chunk_bytes = chunk_bytes;
  spec.optimiser = momentum();
  spec.rate.base = 0.05;
  spec.wire = c.wire;
  spec.last_step = steps;
  return spec;
}

class Coded : public testing::TestWithParam<Case> {};

TEST_P(Coded, OwnersKeepFloat32AndAllEndWithIt) {
  constexpr std::uint64_t steps = 4;
  const Case& c = GetParam();
  const ExchangeSpec spec = spec_of(c, steps);
  const Weights due = expected(c, steps, spec.optimiser, spec.rate);
  const auto size = static_cast<std::size_t>(c.topology.size);
  std::vector<Weights> trained(size);
  std::vector<FrameBytes> bytes(size);
  const auto outcomes =
      run_ranks(c.topology, [&](int rank, const MeshSpec& mesh, Listener listener) {
        const auto r = static_cast<std::size_t>(rank);
        Replica replica(sizes);
        if (c.topology.is_owner(rank)) replica.set_initial();
        ParameterExchange exchange(spec, replica.spans(), Mesh::join(mesh, std::move(listener)));
        if (exchange.is_worker()) train(exchange, replica, c.topology.worker_number(rank), steps);
        exchange.finish();
        trained[r] = replica.weights;
        bytes[r] = exchange.ledger().bytes();
      });
  std::int64_t saved_sent = 0, saved_received = 0;
  for (std::size_t rank = 0; rank < size; ++rank) {
    ASSERT_TRUE(outcomes[rank].ok) << "rank " << rank << ": " << outcomes[rank].message;
    EXPECT_TRUE(same_bits(trained[rank], due)) << "rank " << rank;
    saved_sent += bytes[rank].saved_sent;
    saved_received += bytes[rank].saved_received;
  }
  EXPECT_EQ(saved_received, saved_sent);
  if (c.wire.weights == Coding::lossless || c.wire.gradients == Coding::lossless) {
    EXPECT_GT(saved_sent, 0);  // How much depends on the values.
    return;
  }
  // Gradients of every step, and weights of every step but the last.
  const ShardMap map = c.topology.shard_map(sizes, Shards::even, chunk_bytes);
  std::int64_t due_saved = 0;
  for (std::size_t i = 0; i < map.chunks(); ++i)
    for (const Coding coding : {c.wire.weights, c.wire.gradients})
      due_saved += static_cast<std::int64_t>(map[i].bytes()) -
                   static_cast<std::int64_t>(coded_bytes(coding, map[i].count));
  const auto others = static_cast<std::int64_t>(c.topology.workers().size()) -
                      (c.topology.mode == ServerMode::central ? 0 : 1);
  EXPECT_EQ(saved_sent, due_saved * others * static_cast<std::int64_t>(steps));
}

std::string case_name(const testing::TestParamInfo<Case>& info) {
  std::string name = name_of(info.param.topology.mode) + std::to_string(info.param.topology.size) +
                     info.param.wire.str();
  for (char& letter : name)
    if (letter == ':' || letter == ',') letter = '_';
  return name;
}

constexpr Topology central{ServerMode::central, 3, 0}, distributed{ServerMode::distributed, 3, 0};

INSTANTIATE_TEST_SUITE_P(Wires, Coded,
                         testing::Values(Case{central, {Coding::bf16, Coding::bf16}},
                                         Case{central, {Coding::float32, Coding::fp16}},
                                         Case{distributed, {Coding::bf16, Coding::bf16}},
                                         Case{distributed, {Coding::fp16, Coding::fp16}},
                                         Case{distributed, {Coding::bf16, Coding::float32}},
                                         Case{central, {Coding::lossless, Coding::lossless}},
                                         Case{central, {Coding::lossless, Coding::float32}},
                                         Case{distributed, {Coding::lossless, Coding::float32}},
                                         Case{distributed, {Coding::float32, Coding::lossless}},
                                         Case{distributed, {Coding::lossless, Coding::lossless}},
                                         Case{distributed, {Coding::lossless, Coding::bf16}},
                                         Case{{ServerMode::distributed, 1, 0},
                                              {Coding::bf16, Coding::bf16}}),
                         case_name);

/// Workers of an asynchronous run end with the owners' weights, too.
TEST(CodedAsync, AllEndWithTheSameWeights) {
  for (const auto& [topology, coding] :
       {std::pair(central, Coding::bf16), std::pair(distributed, Coding::bf16),
        std::pair(central, Coding::lossless), std::pair(distributed, Coding::lossless)}) {
    const Case c{topology, {coding, coding}};
    ExchangeSpec spec = spec_of(c, 5);
    spec.sync = Sync::none;
    spec.last_step.reset();
    std::vector<Weights> trained(static_cast<std::size_t>(topology.size));
    const auto outcomes =
        run_ranks(topology, [&](int rank, const MeshSpec& mesh, Listener listener) {
          Replica replica(sizes);
          if (c.topology.is_owner(rank)) replica.set_initial();
          ParameterExchange exchange(spec, replica.spans(), Mesh::join(mesh, std::move(listener)));
          if (exchange.is_worker()) train(exchange, replica, c.topology.worker_number(rank), 5);
          exchange.finish();
          trained[static_cast<std::size_t>(rank)] = replica.weights;
        });
    for (std::size_t rank = 0; rank < trained.size(); ++rank) {
      ASSERT_TRUE(outcomes[rank].ok) << outcomes[rank].message;
      EXPECT_TRUE(same_bits(trained[rank], trained[0])) << "rank " << rank;
    }
  }
}

/// A rank takes gradients in the coding that was agreed on alone, as a whole.
TEST(CodedFrame, OnlyTheAgreedCodingIsTaken) {
  struct Wrong {
    std::uint16_t kind;
    std::size_t bytes;
    const char* says;
  };
  for (const Wrong& wrong : {Wrong{gradient, 24, "float32 where bf16 is due"},
                             Wrong{gradient + 256 * 2, 16, "fp16 where bf16 is due"},
                             Wrong{gradient + 256, 24, "24 bytes where 12 are due"},
                             Wrong{gradient + 256, 10, "10 bytes where 12 are due"}}) {
    Scene one;
    one.spec.wire = {Coding::bf16, Coding::bf16};
    one.speak = [&](const Speaker& self) {
      for (std::size_t p = 0; p < counts.size(); ++p) self.hear(weights + 256);
      RawFrame frame = frame_of(wrong.kind);
      frame.payload.assign(wrong.bytes, 0);
      self.say(frame);
      wait_for_the_end(self);
    };
    expect_refused(one, wrong.says);
  }
}

/// Packed gradients that are cut, too long, or of no format end the connection.
TEST(CodedFrame, WrongPackedGradientsAreRefused) {
  struct Wrong {
    Bytes payload;
    const char* says;
  };
  Bytes no_ones(20, 0);
  no_ones[0] = 1;
  for (const Wrong& wrong : {Wrong{Bytes(30, 1), "30 bytes where 29 are due at most"},
                             Wrong{Bytes(), "a packed chunk has 0 bytes"},
                             Wrong{Bytes(10, 0), "a raw chunk has 10 bytes where 25 are due"},
                             Wrong{Bytes(10, 7), "a packed chunk is of format 7"},
                             Wrong{no_ones, "a code that is too long"}}) {
    Scene one;
    one.spec.wire = {Coding::lossless, Coding::lossless};
    one.speak = [&](const Speaker& self) {
      for (std::size_t p = 0; p < counts.size(); ++p) self.hear(weights);
      RawFrame frame = frame_of(gradient + 256 * 3);
      frame.payload = wrong.payload;
      self.say(frame);
      wait_for_the_end(self);
    };
    expect_refused(one, wrong.says);
  }
}

/// An owner whose weights before the update were others than the worker's is told so by it.
TEST(CodedFrame, WeightsPackedAgainstOthersAreRefused) {
  Scene one;
  one.topology = {ServerMode::central, 2, 1};
  one.spec.wire = {Coding::lossless, Coding::float32};
  one.speak = [&](const Speaker& self) {
    for (std::uint32_t p = 0; p < counts.size(); ++p) self.say(frame_of(weights, 0, p));
    self.hear(gradient);
    const std::vector<float> others(counts[0], 1.0F), now(counts[0], 1.5F);
    RawFrame frame = frame_of(weights + 256 * 3, 1, 2);
    frame.payload.resize(coded_bytes(Coding::lossless, counts[2]) + coding_slack);
    frame.payload.resize(
        encode_weights(now.data(), others.data(), counts[2], frame.payload.data()));
    self.say(frame);
    wait_for_the_end(self);
  };
  expect_refused(one, "packed against others");
}

}  // namespace
}  // namespace duplex::net
