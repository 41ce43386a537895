// Exchanges whose values cross the wire in 16 bits: what every rank trains is computed here from
// the codings and the update's equation, to the bit.
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
  std::vector<std::uint8_t> bytes(coded_bytes(coding, chunk.count));
  encode(coding, values.data() + chunk.offset, chunk.count, bytes.data());
  decode(coding, bytes.data(), chunk.count, values.data() + chunk.offset);
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
  EXPECT_EQ(saved_received, saved_sent);
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
                                         Case{{ServerMode::distributed, 1, 0},
                                              {Coding::bf16, Coding::bf16}}),
                         case_name);

/// Workers of an asynchronous run end with the owners' weights, too.
TEST(CodedAsync, AllEndWithTheSameWeights) {
  for (const Topology& topology : {central, distributed}) {
    const Case c{topology, {Coding::bf16, Coding::bf16}};
    ExchangeSpec spec = spec_of(c, 5);
    spec.sync = Sync::none;
    spec.last_step.reset();
    std::vector<Weights> trained(static_cast<std::size_t>(topology.size));
    const auto outcomes =
        run_ranks(topology, [&](int rank, const MeshSpec& mesh, Listener listener) {
          Replica replica(sizes);
          if (topology.is_owner(rank)) replica.set_initial();
          ParameterExchange exchange(spec, replica.spans(), Mesh::join(mesh, std::move(listener)));
          if (exchange.is_worker()) train(exchange, replica, topology.worker_number(rank), 5);
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

}  // namespace
}  // namespace duplex::net
