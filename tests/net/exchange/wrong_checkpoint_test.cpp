// Calls for checkpoints and snapshots that cannot be, or come at a wrong moment.
#include <csignal>

#include "tests/net/exchange/speaker.h"

namespace duplex::net {
namespace {

TEST(WrongCheckpoint, ASnapshotOfNoStep) {
  for (const std::uint64_t steps : {0, 1, 2, 7}) {
    Scene one;
    std::atomic<int> taken{0};
    one.spec.snapshot = [&](const CheckpointCall&) { ++taken; };
    one.speak = [&](const Speaker& self) {
      if (steps == 2) {  // Of a step whose gradients have been pushed in part.
        for (std::uint64_t step = 0; step < 2; ++step) {
          for (std::uint32_t p = 0; p < counts.size(); ++p) self.hear(weights);
          for (std::uint32_t p = 0; p < counts.size(); ++p) self.say(frame_of(gradient, step, p));
        }
        for (std::uint32_t p = 0; p < counts.size(); ++p) self.hear(weights);
        self.say(frame_of(gradient, 2, 1));
      }
      self.say(frame_of(snapshot, steps));
      wait_for_the_end(self);
    };
    expect_refused(one, "snapshot: ");
    EXPECT_EQ(taken, 0) << steps;
  }
}

TEST(WrongCheckpoint, ASnapshotOfTheStepThatAllChunksAreOf) {
  Scene one;
  std::atomic<int> taken{0};
  std::atomic<bool> ready{false};
  one.spec.ready = [&](ParameterExchange&) {
    std::this_thread::sleep_for(milliseconds(50));  // What it sets up is there in any case.
    ready = true;
  };
  one.spec.snapshot = [&](const CheckpointCall& call) {
    EXPECT_TRUE(ready);
    EXPECT_EQ(call.steps, 1U);
    EXPECT_EQ(call.signal, SIGTERM);
    ++taken;
  };
  one.speak = [](const Speaker& self) {
    for (std::uint32_t p = 0; p < counts.size(); ++p) self.hear(weights);
    for (std::uint32_t p = 0; p < counts.size(); ++p) self.say(frame_of(gradient, 0, p));
    for (std::uint32_t p = 0; p < counts.size(); ++p) self.hear(weights);
    self.say(frame_of(snapshot, 1, SIGTERM));
    self.say(frame_of(goodbye));
    self.hear(goodbye);
  };
  const std::vector<Outcome> outcomes = play(one);
  EXPECT_TRUE(outcomes[0].ok) << outcomes[0].message;
  EXPECT_EQ(taken, 1);
}

TEST(WrongCheckpoint, AMarkOfACheckpointThatNobodyCalledFor) {
  for (const bool answered : {true, false}) {
    Scene one;
    one.spec.sync = Sync::none;
    one.spec.overlap = false;
    one.spec.snapshot = [](const CheckpointCall&) { ADD_FAILURE() << "taken"; };
    if (!answered) one.spec.ready = [](ParameterExchange& wire) { wire.call_checkpoint({1, 0}); };
    one.speak = [&](const Speaker& self) {
      for (std::uint32_t p = 0; p < counts.size(); ++p) self.hear(weights);
      if (!answered) self.say(frame_of(gradient, 0, 0));
      self.say(frame_of(snapshot, 1));
      wait_for_the_end(self);
    };
    expect_refused(one, answered ? "has not called for" : "has not had the weights");
  }
}

/// A worker that is done pushes no more, so its mark may come while its last weights are still due.
TEST(WrongCheckpoint, AMarkOfAWorkerThatIsDone) {
  Scene one;
  std::atomic<int> taken{0};
  one.topology.size = 3;
  one.spec.sync = Sync::none;
  one.spec.snapshot = [&](const CheckpointCall&) { ++taken; };
  one.spec.ready = [](ParameterExchange& wire) {
    if (!wire.is_worker()) wire.call_checkpoint({1, 0});
  };
  one.speak = [](const Speaker& self) {
    for (std::uint32_t p = 0; p < counts.size(); ++p) self.hear(weights);
    self.say(frame_of(done));
    self.say(frame_of(snapshot, 1));
    for (std::uint32_t p = 0; p < counts.size(); ++p) self.hear(weights);
    self.say(frame_of(goodbye));
    self.hear(goodbye);
  };
  for (const Outcome& outcome : play(one)) EXPECT_TRUE(outcome.ok) << outcome.message;
  EXPECT_EQ(taken, 1);
}

TEST(WrongCheckpoint, ASignalThatEndsNoTraining) {
  struct Told {
    ServerMode mode;
    Kind kind;
    std::uint64_t steps;
    std::uint32_t signal;
  };
  for (const Told& told : {Told{ServerMode::distributed, checkpoint, 4, 257},
                           Told{ServerMode::distributed, checkpoint, 4, 0x80000001},
                           Told{ServerMode::distributed, checkpoint, 4, SIGKILL},
                           Told{ServerMode::distributed, checkpoint, 0, not_written_mark},
                           Told{ServerMode::central, snapshot, 1, not_written_mark},
                           Told{ServerMode::central, snapshot, 1, 0xffffffff}}) {
    Scene one;
    one.topology.mode = told.mode;
    one.spec.snapshot = [](const CheckpointCall&) { ADD_FAILURE() << "taken"; };
    one.speak = [&](const Speaker& self) {
      if (told.kind == snapshot) {
        for (std::uint32_t p = 0; p < counts.size(); ++p) self.hear(weights);
        for (std::uint32_t p = 0; p < counts.size(); ++p) self.say(frame_of(gradient, 0, p));
        for (std::uint32_t p = 0; p < counts.size(); ++p) self.hear(weights);
      }
      self.say(frame_of(told.kind, told.steps, told.signal));
      wait_for_the_end(self);
    };
    expect_refused(one, name_of(static_cast<FrameKind>(told.kind)) + ": ");
  }
}

TEST(WrongCheckpoint, AWorkerThatAsksForACheckpoint) {
  Scene one;
  one.topology.mode = ServerMode::distributed;
  one.speak = [](const Speaker& self) {
    self.say(frame_of(checkpoint, 0));
    wait_for_the_end(self);
  };
  expect_refused(one, "checkpoint: ");
}

}  // namespace
}  // namespace duplex::net
