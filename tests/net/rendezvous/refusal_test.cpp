// Tests that a rank which cannot take part in a run tells the others the reason.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "core/clock.h"
#include "net/rendezvous/handshake.h"
#include "net/rendezvous/link_watch.h"
#include "tests/net/rank_zero.h"
#include "tests/ranks_in_threads.h"

namespace duplex::net {
namespace {

constexpr milliseconds moment{20};

FrameStream accept(Listener& listener) {
  const Deadline limit = soon();
  while (Clock::now() < limit)
    if (Socket socket = listener.accept(milliseconds(5))) return FrameStream(std::move(socket));
  throw Error("nobody connects");
}

void await_bytes(const FrameStream& stream) {
  char byte = 0;
  const Deadline limit = soon();
  while (stream.socket().peek(&byte, 1) <= 0 && Clock::now() < limit)
    std::this_thread::sleep_for(milliseconds(1));
}

/// Shakes hands as rank `self` would. Returns why the other does not fit; empty if it does, or has
/// given up.
std::string shake_hands(FrameStream& stream, const Self& self) {
  try {
    server_handshake(
        stream, self, [](int) {}, soon());
  } catch (const Mismatch& mismatch) {
    return mismatch.what();
  } catch (const Error&) {
  }
  return "";
}

/// Rank 2 shakes hands with ranks 0 and 1, which are the test's. Rank 1 refuses it; before rank 2
/// has noticed that, rank 0's handshake is over, too. Returns what rank 0 learns of it.
std::string what_rank_zero_learns() {
  const Topology topology{ServerMode::distributed, 3, 0};
  Ports ports(topology);
  Listener &zero = ports.listeners[0], &one = ports.listeners[1];
  MeshSpec spec;
  spec.topology = topology;
  spec.rank = 2;
  spec.addresses = ports.addresses;
  spec.identity = test_identity();
  // While it is held, rank 2 can neither fail nor take a link: check is called under its lock.
  std::atomic<bool> hold{false}, held{false}, failed{false};
  spec.check = [&] {
    while (hold) {
      held = true;
      std::this_thread::sleep_for(milliseconds(1));
    }
  };
  std::thread two([&] {
    EXPECT_THROW(Mesh::join(spec), Mismatch);
    failed = true;
  });

  const auto end = [&] {
    hold = false;
    two.join();
  };
  const auto self = [&](int rank) {
    MeshSpec other = spec;
    other.rank = rank;
    if (rank == 1) other.identity.model = fingerprint("lenet");
    return self_of(other);
  };
  std::string learned;
  try {
    FrameStream from_zero = accept(zero), from_one = accept(one);
    await_bytes(from_zero);
    await_bytes(from_one);
    hold = true;
    while (!held && !failed) std::this_thread::sleep_for(milliseconds(1));
    EXPECT_NE(shake_hands(from_one, self(1)), "");
    std::this_thread::sleep_for(moment);
    EXPECT_EQ(shake_hands(from_zero, self(0)), "");
    std::this_thread::sleep_for(moment);
    hold = false;

    std::vector<Link> links(1);
    links[0].stream = std::move(from_zero);
    for (bool last = false; learned.empty() && !last;) {
      last = failed;  // What rank 2 has said before it ended is there to be read.
      try {
        check_links(links, 0);
      } catch (const NetworkError&) {  // Then rank 2 comes once more.
      } catch (const Error& told) {
        learned = told.what();
      }
      if (Socket socket = zero.accept(milliseconds(5))) {
        FrameStream again(std::move(socket));
        learned = shake_hands(again, self(0));
      }
    }
  } catch (...) {
    end();
    throw;
  }
  end();
  return learned;
}

TEST(Refusal, IsToldToARankWhoseHandshakeIsJustOver) {
  std::vector<std::thread> attempts;
  for (int i = 0; i < 6; ++i)
    attempts.emplace_back([] { expect_in(what_rank_zero_learns(), {"model", "lenet"}); });
  for (std::thread& attempt : attempts) attempt.join();
}

/// Rank 1 is accepted and has not finished its handshake when rank 0 fails because of rank 2.
TEST(Refusal, IsToldToARankThatHasBeenAccepted) {
  RankZero zero(3);
  Socket one = zero.connect(), two = zero.connect();
  RawSelf self;
  self.size = 3;
  const auto fail = [&] {
    RawSelf other = self;
    other.rank = 2;
    other.model = "lenet";
    EXPECT_NE(raw_handshake(two, other), "");
    std::this_thread::sleep_for(moment);
  };
  ASSERT_EQ(raw_handshake(one, self, fail), "");
  const RawFrame told = receive_raw(one);
  ASSERT_EQ(told.kind, static_cast<int>(FrameKind::abort));
  const AbortReason reason = decode_abort(told.payload.data(), told.payload.size());
  expect_in(reason.text, {"rank 2 (127.0.0.1:", "model", "lenet"});
  one = Socket();
  zero.wait();
  EXPECT_EQ(zero.outcome.code, Exit::failed);
}

}  // namespace
}  // namespace duplex::net
