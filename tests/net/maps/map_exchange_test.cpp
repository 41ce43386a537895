// Tests ranks that train a network which is cut: members exchange what they share, and maps cross.
#include <gtest/gtest.h>

#include "tests/net/exchange/speaker.h"

namespace duplex::net {
namespace {

/// Three ranks: parameter 0 is of ranks 0 and 1, parameter 1 of all, parameter 2 of rank 2 alone.
const std::vector<std::size_t> sizes{40000, 9, 30000};
const std::vector<std::vector<int>> members{{0, 1}, {0, 1, 2}, {2}};
constexpr std::uint64_t steps = 3, micro_batches = 2;
constexpr std::size_t large = 300000;  // Three parts.

ExchangeSpec spec() {
  ExchangeSpec spec;
  spec.members = members;
  spec.mean.sum = true;
  spec.maps = {{0, 2, large, true, false, "conv1"},
               {1, 2, 7, true, false, "conv2"},
               {2, 0, 1, false, true, "the loss"}};
  spec.micro_batches = micro_batches;
  spec.in_flight = micro_batches;
  spec.last_step = steps;
  spec.optimiser.momentum = 0.9F;
  spec.timeout = std::chrono::milliseconds(20000);
  return spec;
}

bool is_member(std::size_t parameter, int rank) {
  const std::vector<int>& own = members[parameter];
  return std::find(own.begin(), own.end(), rank) != own.end();
}

float value_of(const MapMessage& message, std::size_t i) {
  return static_cast<float>(1000 * message.micro_batch + 100 * message.transfer +
                            (message.gradient ? 10 : 0)) +
         static_cast<float>(i % 97);
}

void leave(MapExchange& maps, const MapMessage& message, std::size_t count) {
  float* const values = maps.room(message);
  for (std::size_t i = 0; i < count; ++i) values[i] = value_of(message, i);
  maps.send(message);
}

void expect_here(MapExchange& maps, const MapMessage& message, std::size_t count) {
  const float* const values = await(maps, message);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < count; ++i) wrong += values[i] == value_of(message, i) ? 0 : 1;
  EXPECT_EQ(wrong, 0U) << message.transfer << " " << message.micro_batch;
  maps.release(message);
}

/// Forward of all micro-batches, then backward of all.
void cross(MapExchange& maps, int rank, std::uint64_t step) {
  const std::size_t route = rank == 1 ? 1 : 0, count = rank == 1 ? 7 : large;
  const auto each = [&](const auto& work) {
    for (std::uint64_t m = 0; m < micro_batches; ++m) work(step * micro_batches + m);
  };
  if (rank < 2) {
    each([&](std::uint64_t m) { leave(maps, {route, false, m}, count); });
    each([&](std::uint64_t m) { expect_here(maps, {route, true, m}, count); });
  } else {
    each([&](std::uint64_t m) {
      expect_here(maps, {1, false, m}, 7);
      expect_here(maps, {0, false, m}, large);
    });
    each([&](std::uint64_t m) {
      leave(maps, {0, true, m}, large);
      leave(maps, {1, true, m}, 7);
    });
    leave(maps, {2, false, step}, 1);
  }
  if (rank == 0) expect_here(maps, {2, false, step}, 1);
}

/// Members update by the sum of their gradients.
std::vector<std::vector<float>> trained_alone(const ExchangeSpec& spec) {
  Replica replica(sizes);
  replica.set_initial();
  std::vector<std::vector<float>> velocity;
  for (const std::size_t count : sizes) velocity.emplace_back(count, 0.0F);
  for (std::uint64_t step = 0; step < steps; ++step)
    for (std::size_t p = 0; p < sizes.size(); ++p) {
      std::vector<float> sum;
      for (const int rank : members[p]) {
        replica.compute(p, rank, step);
        if (sum.empty())
          sum = replica.gradients[p];
        else
          for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += replica.gradients[p][i];
      }
      float* state[] = {velocity[p].data()};
      update({spec.optimiser, spec.rate.at(step), step + 1}, sizes[p], replica.weights[p].data(),
             sum.data(), state);
    }
  return replica.weights;
}

TEST(MapExchange, MembersTrainAndMapsCross) {
  const ExchangeSpec one = spec();
  const auto wanted = trained_alone(one);
  const Topology topology{ServerMode::distributed, 3, 0};
  const auto outcomes = run_ranks(topology, [&](int rank, const MeshSpec& mesh, Listener listener) {
    Replica replica(sizes);
    replica.set_initial();
    std::vector<Span> spans = replica.spans();
    for (std::size_t p = 0; p < sizes.size(); ++p) {
      if (is_member(p, rank)) continue;
      spans[p].gradient = nullptr;
      if (rank != 0) spans[p].weights = nullptr;  // Rank 0 is sent the last ones.
    }
    ParameterExchange exchange(one, spans, Mesh::join(mesh, std::move(listener)));
    for (std::uint64_t step = 0; step < steps; ++step) {
      exchange.begin(step);
      for (std::size_t p = 0; p < sizes.size(); ++p)
        if (is_member(p, rank)) exchange.await(p);
      cross(exchange.maps(), rank, step);
      for (std::size_t p = sizes.size(); p-- > 0;) {
        if (!is_member(p, rank)) continue;
        replica.compute(p, rank, step);
        exchange.push(p);
      }
      exchange.end();
    }
    exchange.finish();
    for (std::size_t p = 0; p < sizes.size(); ++p) {
      if (rank == 0 || is_member(p, rank)) {
        EXPECT_EQ(replica.weights[p], wanted[p]) << p;
      }
    }
  });
  for (const Outcome& outcome : outcomes) EXPECT_TRUE(outcome.ok) << outcome.message;
}

/// Rank 1 says these frames, which carry a map or its gradient; rank 0 ends the run, and says why.
void expect_refused(const std::vector<RawFrame>& frames, const std::string& why) {
  const Topology topology{ServerMode::distributed, 2, 0};
  const auto outcomes = run_ranks(topology, [&](int rank, const MeshSpec& spec, Listener listener) {
    Mesh mesh = Mesh::join(spec, std::move(listener));
    if (rank == 1) {
      const Speaker self{1, mesh.links()};
      for (const RawFrame& frame : frames) self.say(frame);
      wait_for_the_end(self);
      return;
    }
    ExchangeSpec own;
    own.members = {{0}};
    own.mean.sum = true;
    own.maps = {{1, 0, 7, true, false, "conv1"},
                {0, 1, 7, true, false, "conv2"},
                {0, 1, 1, false, true, "the loss"}};
    own.micro_batches = 4;
    own.in_flight = 2;
    own.last_step = 9;
    Replica replica({5});
    ParameterExchange exchange(own, replica.spans(), std::move(mesh));
    await(exchange.maps(), {0, false, 30});
  });
  EXPECT_NE(outcomes[0].message.find("rank 1 (127.0.0.1:"), std::string::npos);
  EXPECT_NE(outcomes[0].message.find(why), std::string::npos) << outcomes[0].message;
  EXPECT_LT(outcomes[0].seconds, soon_s);
}

RawFrame map_frame(std::uint16_t kind, std::uint32_t route, std::uint32_t part,
                   std::uint64_t step = 0, std::size_t values = 7) {
  RawFrame frame;
  frame.kind = kind;
  frame.parameter = route;
  frame.chunk = part;
  frame.step = step;
  frame.payload.assign(values * sizeof(float), 0);
  return frame;
}

TEST(MapExchange, WrongFramesEndTheRun) {
  constexpr std::uint16_t map = 33, gradient = 34;
  expect_refused({map_frame(map, 3, 0)}, "there is no such route");
  expect_refused({map_frame(map, 1, 0)}, "it does not lead from that rank to this one");
  expect_refused({map_frame(gradient, 0, 0)}, "it does not lead from that rank to this one");
  expect_refused({map_frame(map, 0, 1)}, "part 0 of step 0 is due");
  expect_refused({map_frame(map, 0, 0, 1)}, "part 0 of step 0 is due");
  expect_refused({map_frame(map, 0, 0), map_frame(map, 0, 0)}, "part 1 of step 0 is due");
  expect_refused({map_frame(map, 0, 0, 0, 6)}, "24 bytes where 28 are due");
  expect_refused({map_frame(map, 0, 0, 0, 8)}, "32 bytes where 28 are due");
  expect_refused({map_frame(gradient, 1, 0)}, "this rank has not sent its map yet");
  expect_refused({map_frame(gradient, 2, 0)}, "no gradient goes back on it");
  constexpr std::uint16_t bf16 = 256;  // The coding is the kind's upper byte.
  expect_refused({map_frame(map + bf16, 0, 0)}, "bf16 where float32 is due");
  expect_refused({map_frame(map, 0, 0), map_frame(map, 0, 1), map_frame(map, 0, 2)},
                 "more than 2 are under way");
}

TEST(MapExchange, AMapThatDoesNotComeIsNamed) {
  const Topology topology{ServerMode::distributed, 2, 0};
  const auto outcomes = run_ranks(topology, [&](int rank, const MeshSpec& spec, Listener listener) {
    Mesh mesh = Mesh::join(spec, std::move(listener));
    if (rank == 1) {
      // It lives, and does not get on.
      const Speaker self{1, mesh.links()};
      try {
        for (;;) {
          self.say(frame_of(heartbeat, 1));
          std::this_thread::sleep_for(milliseconds(50));
        }
      } catch (const NetworkError&) {  // Rank 0 has ended the run.
      }
      return;
    }
    ExchangeSpec own;
    own.members = {{0}};
    own.maps = {{1, 0, 7, true, false, "conv1"}};
    own.last_step = 9;
    own.timeout = milliseconds(500);
    Replica replica({5});
    ParameterExchange exchange(own, replica.spans(), std::move(mesh));
    await(exchange.maps(), {0, false, 0});
  });
  EXPECT_EQ(outcomes[0].code, Exit::timed_out);
  EXPECT_NE(outcomes[0].message.find("waiting for the map of conv1 for micro-batch 0 of step 0"),
            std::string::npos)
      << outcomes[0].message;
}

}  // namespace
}  // namespace duplex::net
