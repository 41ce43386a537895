// What a rank tells the others when it cannot take part.
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

/// Shakes hands as rank `self` would. Returns why the other does not fit; empty if it does.
std::string shake_hands(FrameStream& stream, const Self& self) {
  try {
    server_handshake(
        stream, self, [](int) {}, soon());
    return "";
  } catch (const Mismatch& mismatch) {
    return mismatch.what();
  }
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

  const auto self = [&](int rank) {
    MeshSpec other = spec;
    other.rank = rank;
    if (rank == 1) other.identity.model = fingerprint("lenet");
    return self_of(other);
  };
  FrameStream from_zero = accept(zero), from_one = accept(one);
  await_bytes(from_zero);
  await_bytes(from_one);
  hold = true;
  while (!held) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_NE(shake_hands(from_one, self(1)), "");
  std::this_thread::sleep_for(moment);
  EXPECT_EQ(shake_hands(from_zero, self(0)), "");
  std::this_thread::sleep_for(moment);
  hold = false;

  std::vector<Link> links(1);
  links[0].stream = std::move(from_zero);
  std::string learned;
  while (learned.empty() && !failed) {
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
  two.join();
  return learned;
}

TEST(Refusal, IsToldToARankWhoseHandshakeIsJustOver) {
  std::vector<std::thread> attempts;
  for (int i = 0; i < 20; ++i)
    attempts.emplace_back([] { expect_in(what_rank_zero_learns(), {"model", "lenet"}); });
  for (std::thread& attempt : attempts) attempt.join();
}

}  // namespace
}  // namespace duplex::net
