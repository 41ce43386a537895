// Frames that would be right at another moment: the rank that they come to applies nothing of them,
// does not wait for what cannot come, and names their sender.
#include "tests/net/exchange/speaker.h"

namespace duplex::net {
namespace {

TEST(WrongMoment, AGoodbyeInTheMiddleOfAGradient) {
  for (const Sync sync : {Sync::join, Sync::none}) {
    Scene one;
    one.spec.sync = sync;
    one.speak = [](const Speaker& self) {
      for (std::size_t p = 0; p < counts.size(); ++p) self.hear(weights);
      self.say(frame_of(gradient, 0, 0));
      self.say(frame_of(goodbye));
      wait_for_the_end(self);
    };
    expect_refused(one, "goodbye: ");
  }
}

/// With strict order its weights wait at the server for another worker's gradient.
TEST(WrongMoment, AGoodbyeBeforeTheWeightsThatItIsOwed) {
  Scene one;
  one.topology.size = 3;
  one.spec.overlap = false;
  std::atomic<bool> over{false};
  one.speak = [&](const Speaker& self) {
    for (std::uint32_t p = 0; p < counts.size(); ++p) self.say(frame_of(gradient, 0, p));
    self.say(frame_of(goodbye));
    wait_for_the_end(self);
    over = true;
  };
  one.begins = [&] { return bool{over}; };
  expect_refused(one, "goodbye: ");
}

TEST(WrongMoment, AGoodbyeInTheMiddleOfAReport) {
  Scene one;
  one.speak = [](const Speaker& self) {
    for (std::size_t p = 0; p < counts.size(); ++p) self.hear(weights);
    RawFrame part = frame_of(report, 10);
    part.payload.assign(5, 'a');
    self.say(part);
    self.say(frame_of(goodbye));
    wait_for_the_end(self);
  };
  expect_refused(one, "goodbye: ");
}

/// In an asynchronous run the others' last weights wait for its `done`.
TEST(WrongMoment, AGoodbyeWithoutDone) {
  for (const ServerMode mode : {ServerMode::central, ServerMode::distributed}) {
    Scene one;
    one.topology.mode = mode;
    one.topology.size = 3;
    one.spec.sync = Sync::none;
    one.speak = [&](const Speaker& self) {
      const ShardMap map = self.links.size() > 1
                               ? ShardMap::distributed(counts, 3, Shards::even, 4096)
                               : ShardMap::central(counts, 0, 4096);
      for (Link& link : self.links)
        for (std::size_t i = 0; i < map.chunks(); ++i)
          if (map[i].owner == 2) {
            RawFrame frame = frame_of(weights, 0, map[i].parameter);
            frame.chunk = map[i].number;
            frame.payload.resize(map[i].bytes());
            self.say(frame, link.rank);
          }
      for (std::size_t i = 0; i < map.chunks_of(0); ++i) self.hear(weights);
      self.say(frame_of(goodbye));
      wait_for_the_end(self);
    };
    if (mode == ServerMode::distributed) {
      expect_refused(one, "goodbye: ");
      continue;
    }
    for (const Outcome& outcome : play(one)) {
      EXPECT_TRUE(outcome.ok) << outcome.message;
      EXPECT_LT(outcome.seconds, soon_s);
    }
    EXPECT_EQ(one.lost, std::vector<int>{2});
  }
}

TEST(WrongMoment, DoneBeforeTheWeightsThatItIsOwed) {
  Scene one;
  one.spec.sync = Sync::none;
  one.spec.overlap = false;
  one.speak = [](const Speaker& self) {
    for (std::size_t p = 0; p < counts.size(); ++p) self.hear(weights);
    self.say(frame_of(gradient, 0, 0));
    self.say(frame_of(done));
    wait_for_the_end(self);
  };
  expect_refused(one, "done: ");
}

/// The worker has the weights of step 1 of no chunk before the server has its gradients of all.
TEST(WrongMoment, AGradientOfWeightsThatWereNotSent) {
  for (const Sync sync : {Sync::join, Sync::none}) {
    Scene one;
    one.spec.sync = sync;
    one.spec.overlap = false;
    one.speak = [](const Speaker& self) {
      for (std::size_t p = 0; p < counts.size(); ++p) self.hear(weights);
      self.say(frame_of(gradient, 0, 0));
      self.say(frame_of(gradient, 1, 0));
      for (const std::uint32_t p : {1U, 2U}) self.say(frame_of(gradient, 0, p));
      wait_for_the_end(self);
    };
    expect_refused(one, "step 1, from worker 0: ");
  }
}

/// Nor may an asynchronous worker push on without reading its weights.
TEST(WrongMoment, AGradientOfWeightsThatWaitForTheirTurn) {
  Scene one;
  one.spec.sync = Sync::none;
  one.speak = [](const Speaker& self) {
    try {
      for (std::uint64_t step = 0; step < 200000; ++step) self.say(frame_of(gradient, step, 0));
    } catch (const NetworkError&) {  // The server has closed.
    }
  };
  expect_refused(one, "from worker 0: ");
}

/// In an asynchronous run the snapshot is a mark, of a checkpoint that the server has called for.
/// Only a rank that trains nothing asks the first worker for a checkpoint.
TEST(WrongMoment, AGoodbyeWithTheTurn) {
  Scene one;
  one.topology.size = 3;
  one.spec.semaphore = true;
  one.speak = [](const Speaker& self) {
    for (std::size_t p = 0; p < counts.size(); ++p) self.hear(weights);
    self.say(frame_of(ask));
    self.hear(grant);
    self.say(frame_of(goodbye));
    wait_for_the_end(self);
  };
  expect_refused(one, "goodbye: ");
}

/// It lives and gets on, but never gives back the turn that another waits for.
TEST(WrongMoment, ATurnThatIsNeverGivenBack) {
  for (const Sync sync : {Sync::join, Sync::none}) {
    Scene one;
    one.topology.size = 3;
    one.spec.sync = sync;
    one.spec.semaphore = true;
    one.spec.timeout = milliseconds(700);
    std::atomic<bool> granted{false};
    one.begins = [&] { return bool{granted}; };
    one.speak = [&](const Speaker& self) {
      self.say(frame_of(ask));
      granted = self.hear(grant).kind == grant;
      self.live();
    };
    const std::vector<Outcome> outcomes = play(one);
    EXPECT_TRUE(granted);
    EXPECT_LT(outcomes[0].seconds, soon_s);
    if (sync == Sync::none) {
      for (const Outcome& outcome : outcomes) EXPECT_TRUE(outcome.ok) << outcome.message;
      EXPECT_EQ(one.lost, std::vector<int>{2});
      continue;
    }
    for (const int rank : {0, 1}) {
      const Outcome& outcome = outcomes[static_cast<std::size_t>(rank)];
      EXPECT_EQ(outcome.code, Exit::timed_out) << outcome.message;
      EXPECT_NE(outcome.message.find("rank 2 (127.0.0.1:"), std::string::npos) << outcome.message;
      if (rank != 0) continue;
      EXPECT_EQ(outcome.message.find("rank 1"), std::string::npos) << outcome.message;
    }
  }
}

/// After its goodbye nobody reads what it sends, so the sending thread has to tell that it is gone:
/// here it holds the turn for weights, for which the other worker's wait.
TEST(WrongMoment, AnEndBehindTheGoodbye) {
  Scene one;
  one.topology = {ServerMode::distributed, 3, 0};
  one.steps = 40;
  one.speak = [](const Speaker& self) {
    const ShardMap map = ShardMap::distributed(counts, 3, Shards::even, 4096);
    for (Link& link : self.links)
      for (std::size_t i = 0; i < map.chunks(); ++i)
        if (map[i].owner == 2) {
          RawFrame frame = frame_of(weights, 0, map[i].parameter);
          frame.chunk = map[i].number;
          frame.payload.resize(map[i].bytes());
          self.say(frame, link.rank);
        }
    for (const int other : {0, 1}) {
      for (std::size_t i = 0; i < map.chunks_of(other); ++i) self.hear(weights, other);
      self.say(frame_of(goodbye), other);
    }
  };
  const std::vector<Outcome> outcomes = play(one);
  for (const int rank : {0, 1}) {
    EXPECT_FALSE(outcomes[static_cast<std::size_t>(rank)].ok);
    EXPECT_LT(outcomes[static_cast<std::size_t>(rank)].seconds, soon_s);
    EXPECT_NE(outcomes[static_cast<std::size_t>(rank)].message.find("rank 2"), std::string::npos)
        << outcomes[static_cast<std::size_t>(rank)].message;
  }
}

}  // namespace
}  // namespace duplex::net
