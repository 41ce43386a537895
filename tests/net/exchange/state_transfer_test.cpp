// The state of a checkpoint on its way to the rank that keeps a copy of it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <thread>

#include "net/connection/connection.h"
#include "tests/net/cluster.h"

namespace duplex::net {
namespace {

constexpr std::size_t part_values = Connection::state_part / sizeof(float);

std::string bytes_of(const std::vector<float>& values, std::size_t from, std::size_t count) {
  std::string bytes(count * sizeof(float), '\0');
  std::memcpy(bytes.data(), values.data() + from, bytes.size());
  return bytes;
}

std::vector<float> counted(std::size_t count, float first) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

StateValues array_of(std::vector<float> values) {
  return {values.size(),
          [held = std::move(values)](float* to) { std::copy(held.begin(), held.end(), to); }};
}

TEST(StateInbox, TakesPartsInTheirOrderAndNothingElse) {
  StateInbox inbox;
  inbox.expect(2, part_values + 10);
  const std::vector<float> values = counted(part_values + 10, 1.0F);
  const std::string first = bytes_of(values, 0, part_values),
                    rest = bytes_of(values, part_values, 10);
  EXPECT_THROW(inbox.add(1, 5, 0, first), ProtocolError) << "no copies of that one are kept";
  EXPECT_THROW(inbox.add(2, 5, 1, rest), ProtocolError) << "its beginning is missing";
  EXPECT_THROW(inbox.add(2, 5, 0, rest), ProtocolError) << "it is too short";
  StateInbox other;
  other.expect(2, part_values + 10);
  other.add(2, 5, 0, first);
  EXPECT_THROW(other.add(2, 5, 0, first), ProtocolError) << "it has come";
  EXPECT_THROW(other.add(2, 5, 1, first), ProtocolError) << "it is too long";
  other.add(2, 5, 1, rest);
  EXPECT_THROW(other.add(2, 5, 2, ""), ProtocolError) << "all of it has come";
  EXPECT_THROW(other.add(2, 4, 0, first), ProtocolError) << "it is of an older checkpoint";
  other.add(2, 6, 0, first);
  EXPECT_THROW(other.add(2, 7, 0, first), ProtocolError) << "three would be here at once";
  EXPECT_EQ(other.take(2, 5), values);
  EXPECT_EQ(other.parts(), 3U);
  other.stop();
  EXPECT_EQ(other.take(2, 6), std::nullopt);
}

TEST(SendOrder, StateGoesBehindAllThatTrainingSends) {
  SendOrder order;
  order.take_turns(true, 0);
  order.last(Outgoing::of(FrameKind::goodbye, 0));
  order.background(Outgoing::of(FrameKind::state, 0));
  Outgoing gradient;
  gradient.header.kind = FrameKind::gradient;
  order.data(gradient);
  order.update_turns(Clock::now());
  Outgoing frame;
  const auto next = [&] { return order.take(frame) ? name_of(frame.header.kind) : "nothing"; };
  EXPECT_EQ(next(), "ask");
  EXPECT_EQ(next(), "nothing") << "the gradient waits for its turn";
  EXPECT_FALSE(order.empty());
  EXPECT_TRUE(order.grant_gradients());
  for (const char* kind : {"gradient", "state", "goodbye", "nothing"}) EXPECT_EQ(next(), kind);
  EXPECT_TRUE(order.empty());
}

/// However soon the next step's gradients come, other workers have their turn first.
TEST(SendOrder, ATurnForGradientsIsForOneStep) {
  SendOrder order;
  order.take_turns(true, 0, std::chrono::hours(1));
  std::string sent;
  const auto send_all = [&] {
    order.update_turns(Clock::now());
    for (Outgoing frame; order.take(frame); order.update_turns(Clock::now()))
      sent += std::string(name_of(frame.header.kind)) + " ";
  };
  const auto queue = [&](std::uint64_t step) {
    Outgoing gradient;
    gradient.header.kind = FrameKind::gradient;
    gradient.header.step = step;
    order.data(gradient);
    send_all();
  };
  queue(7);
  EXPECT_TRUE(order.grant_gradients());
  send_all();
  queue(7);
  EXPECT_EQ(sent, "ask gradient gradient ");
  queue(8);
  EXPECT_EQ(sent, "ask gradient gradient release ask ");
  EXPECT_TRUE(order.grant_gradients());
  send_all();
  EXPECT_EQ(sent, "ask gradient gradient release ask gradient ");
}

/// Every rank sends the next one values of a checkpoint while it trains, and once more at the end.
/// The values are there, the training has the bits that it has without them, and the sums of its
/// steps do not know them.
TEST(StateTransfer, GoesBesideTheTraining) {
  const std::vector<std::size_t> counts{30000, 500, 20000};
  constexpr std::uint64_t steps = 6;
  OptimiserSpec optimiser;
  const auto expected = train_alone(counts, 3, steps, optimiser, LearningRate());
  const auto values_of = [](int rank) {
    return counted(3 * part_values + 7, 1000.0F * static_cast<float>(rank));
  };
  double sent_in_step = 0;
  for (const bool sends : {false, true}) {
    const Topology topology{ServerMode::distributed, 3, 0};
    const auto outcomes = run_ranks(topology, [&](int rank, MeshSpec spec, Listener listener) {
      const int before = (rank + 2) % 3;
      ExchangeSpec exchange;
      exchange.optimiser = optimiser;
      exchange.state_inbox = std::make_shared<StateInbox>();
      exchange.state_inbox->expect(before, values_of(before).size());
      Replica replica(counts);
      replica.set_initial();
      ParameterExchange wire(exchange, replica.spans(),
                             Mesh::join(std::move(spec), std::move(listener)));
      const auto send = [&](std::uint64_t checkpoint) {
        wire.await_state_sent();
        // The values lie in several arrays, of which one is empty.
        const std::vector<float> values = values_of(rank);
        std::vector<StateValues> arrays;
        for (const auto& [from, to] : {std::pair<std::size_t, std::size_t>{0, 10},
                                       {10, 10},
                                       {10, part_values + 5},
                                       {part_values + 5, values.size()}})
          arrays.push_back(array_of({values.begin() + static_cast<std::ptrdiff_t>(from),
                                     values.begin() + static_cast<std::ptrdiff_t>(to)}));
        wire.send_state((rank + 1) % 3, checkpoint, std::move(arrays));
      };
      if (sends) send(1);
      train(wire, replica, rank, steps);
      wire.await_last_weights();
      if (sends) send(2);
      wire.finish();
      for (const std::uint64_t checkpoint : {1U, 2U}) {
        const auto got = exchange.state_inbox->take(before, checkpoint);
        ASSERT_EQ(got.has_value(), sends);
        if (sends) {
          EXPECT_EQ(*got, values_of(before)) << rank;
        }
      }
      EXPECT_EQ(replica.weights, expected);
      if (rank != 0) return;
      if (sends)
        EXPECT_EQ(wire.traffic().step_sent, sent_in_step);
      else
        sent_in_step = wire.traffic().step_sent;
    });
    for (const Outcome& outcome : outcomes) EXPECT_TRUE(outcome.ok) << outcome.message;
  }
  EXPECT_GT(sent_in_step, 0);
}

/// A rank that nobody keeps a copy for sends none.
TEST(StateTransfer, IsRefusedWhereItIsNotExpected) {
  const std::vector<std::size_t> counts{3000};
  const Topology topology{ServerMode::distributed, 2, 0};
  const auto outcomes = run_ranks(topology, [&](int rank, MeshSpec spec, Listener listener) {
    Replica replica(counts);
    replica.set_initial();
    ParameterExchange wire(ExchangeSpec(), replica.spans(),
                           Mesh::join(std::move(spec), std::move(listener)));
    if (rank == 0) wire.send_state(1, 1, {array_of(counted(5, 0.0F))});
    train(wire, replica, rank, 4);
    wire.finish();
  });
  // Rank 1 may have said goodbye before.
  EXPECT_FALSE(outcomes[1].ok);
  EXPECT_NE(outcomes[1].message.find("this rank awaits no state"), std::string::npos)
      << outcomes[1].message;
}

}  // namespace
}  // namespace duplex::net
