// The rendezvous: ranks that belong together find each other, in any order and whoever else
// connects.
#include "net/rendezvous/mesh.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "tests/net/rank_zero.h"

namespace duplex::net {
namespace {

TEST(Mesh, StrangersCostNothing) {
  RankZero zero(3);
  // One is silent, one sends garbage, one a huge length, one half a hello, one another job, one
  // leaves at once, two reject what this rank has not said and what it has; all but that one stay
  // connected.
  std::vector<Socket> strangers;
  strangers.reserve(8);
  for (int i = 0; i < 8; ++i) strangers.push_back(zero.connect());
  const std::string garbage = "GET / HTTP/1.1\r\nHost: example.org\r\n\r\n";
  strangers[1].write_all(garbage.data(), garbage.size(), nullptr, 0, soon(), "testing");
  RawFrame huge;
  huge.kind = 1;
  huge.length = std::uint64_t{1} << 60;
  send_raw(strangers[2], huge);
  RawFrame hello;
  hello.kind = 1;
  const Bytes bytes = hello.bytes();
  strangers[3].write_all(bytes.data(), 10, nullptr, 0, soon(), "testing");
  RawSelf elsewhere;
  elsewhere.job = "other";
  expect_in(raw_handshake(strangers[4], elsewhere), {"job 'other'", "job 'test'"});
  strangers[5] = Socket();
  RawFrame reject;
  reject.kind = 5;
  reject.payload = Bytes(4);
  send_raw(strangers[6], reject);
  const Deadline refused = soon();
  while ((zero.log().find("does not speak Duplex's protocol") == std::string::npos ||
          zero.log().find("job 'other'") == std::string::npos) &&
         Clock::now() < refused)
    std::this_thread::sleep_for(milliseconds(1));
  expect_in(zero.log(), {"does not speak Duplex's protocol", "job 'other'"});

  Socket one = zero.connect(), two = zero.connect();
  RawSelf self;
  self.size = 3;
  EXPECT_EQ(raw_handshake(one, self), "");
  self.rank = 2;
  EXPECT_EQ(raw_handshake(two, self), "");
  zero.wait();
  EXPECT_TRUE(zero.outcome.ok) << zero.outcome.message;
  EXPECT_EQ(zero.mesh.links().size(), 2U);
}

/// A name server may learn a host's name later, so the rank tries again before it gives up.
TEST(Mesh, AnUnknownNameIsTriedAgainForATime) {
  RankZero zero(2, milliseconds(2000));
  std::string log;
  const auto begin = Clock::now();
  const std::string said = zero.join(1, [&](MeshSpec& spec) {
    spec.addresses[0].host = "no.such.host.invalid";
    spec.name_limit = milliseconds(500);
    spec.log = [&](const std::string& line) { log += line + "\n"; };
  });
  expect_in(said, {"'no.such.host.invalid' cannot be resolved"});
  EXPECT_GE(Clock::now() - begin, milliseconds(500));
  expect_in(log, {"tries again: host name 'no.such.host.invalid' cannot be resolved"});
  EXPECT_EQ(log.find("tries again"), log.rfind("tries again"));  // It is said once.
}

/// A host that only opens connections, far more than shake hands at one time, delays no rank.
TEST(Mesh, SilentConnectionsKeepNobodyOut) {
  RankZero zero(2, milliseconds(9000));  // Shorter than what a silent connection is waited for.
  std::vector<Socket> silent;
  for (int i = 0; i < 200; ++i) silent.push_back(zero.connect());
  const auto begin = Clock::now();
  EXPECT_EQ(zero.join(1), "");
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(5));
  zero.wait();
  EXPECT_TRUE(zero.outcome.ok) << zero.outcome.message;
  const std::string log = zero.log();
  EXPECT_LE(std::count(log.begin(), log.end(), '\n'), 40) << log;
}

TEST(Mesh, ARankGivenTwiceIsNamedTwice) {
  RankZero zero(3, milliseconds(1500));
  RawSelf self;
  self.size = 3;
  Socket first = zero.connect();
  EXPECT_EQ(raw_handshake(first, self), "");
  Socket second = zero.connect();
  expect_in(raw_handshake(second, self),
            {"rank 1 is there twice", first.local_address(), second.local_address()});
  // Rank 2 never comes; the error then has the line about rank 1.
  zero.wait();
  EXPECT_EQ(zero.outcome.code, Exit::timed_out);
  expect_in(zero.outcome.message, {"in vain for rank 2", "rank 1 is there twice", "1.5 s"});
  EXPECT_EQ(zero.outcome.message.find("for rank 1"), std::string::npos);
  // The rank that was there already is told.
  const RawFrame abort = receive_raw(first);
  EXPECT_EQ(abort.kind, 21);
  EXPECT_EQ(get(abort.payload, 0, 4), 4U);
  expect_in(raw_text(abort.payload, 4), {"in vain for rank 2"});
}

/// The spec of rank 1; rank 0 has a port that nobody listens on.
MeshSpec without_zero(int ranks) {
  MeshSpec spec;
  spec.topology.size = ranks;
  spec.rank = 1;
  spec.addresses.assign(static_cast<std::size_t>(ranks), {"127.0.0.1", 0});
  spec.addresses[0].port = Listener::open({"127.0.0.1", 0}).port();
  return spec;
}

TEST(Mesh, MissingRanksAreNamedWithTheirAddress) {
  MeshSpec spec = without_zero(2);
  const std::uint16_t port = spec.addresses[0].port;
  spec.timeout = milliseconds(200);
  const auto start = Clock::now();
  try {
    Mesh::join(spec);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::timed_out);
    expect_in(error.what(),
              {"rank 0 (127.0.0.1:" + std::to_string(port) + ")", "0.2 s", "refused"});
  }
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(5));
}

/// Rank 1 accepts connections and says nothing. The ranks above it meet all others meanwhile, so
/// that nobody takes one of them for missing.
TEST(Mesh, ASilentRankKeepsNobodyFromTheOthers) {
  const auto outcomes = run_ranks(
      {ServerMode::distributed, 4, 0},
      [](int rank, const MeshSpec& spec, Listener listener) {
        // Rank 0, which waits for nobody else, is not the first to give up.
        if (rank == 0) std::this_thread::sleep_for(milliseconds(300));
        if (rank != 1) {
          Mesh::join(spec, std::move(listener));
          return;
        }
        std::vector<Socket> silent;
        const Deadline end = Clock::now() + milliseconds(3000);
        while (Clock::now() < end)
          if (Socket socket = listener.accept(milliseconds(20)))
            silent.push_back(std::move(socket));
      },
      milliseconds(1500));
  for (const int rank : {0, 2, 3}) {
    const Outcome& outcome = outcomes[static_cast<std::size_t>(rank)];
    EXPECT_EQ(outcome.code, Exit::timed_out) << outcome.message;
    expect_in(outcome.message, {" waited 1.5 s in vain for rank 1 (127.0.0.1:"});
    EXPECT_EQ(outcome.message.find("), rank "), std::string::npos) << outcome.message;
  }
}

TEST(Mesh, ARankThatCameLateIsNotWhatIsMissing) {
  MeshSpec one = without_zero(3), zero = one;
  zero.rank = 0;
  one.timeout = milliseconds(1000);
  std::thread late([&] {
    std::this_thread::sleep_for(milliseconds(100));  // By then rank 1 has been refused.
    EXPECT_THROW(Mesh::join(zero), Error);
  });
  try {
    Mesh::join(one);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::timed_out);
    expect_in(error.what(), {"in vain for rank 2"});
    EXPECT_EQ(std::string(error.what()).find("refused"), std::string::npos) << error.what();
  }
  late.join();
}

TEST(Mesh, RanksMayComeInAnyOrder) {
  for (const ServerMode mode : {ServerMode::central, ServerMode::distributed}) {
    const Topology topology{mode, 4, 2};
    std::vector<Mesh> meshes(4);  // They stay until all ranks are there.
    const auto outcomes =
        run_ranks(topology, [&](int rank, const MeshSpec& spec, Listener listener) {
          // The lower the rank, the later it comes; it answers only then.
          std::this_thread::sleep_for(milliseconds(30 * (topology.size - rank)));
          Mesh& mesh = meshes[static_cast<std::size_t>(rank)];
          mesh = Mesh::join(spec, std::move(listener));
          EXPECT_EQ(mesh.rank(), rank);
          std::vector<int> peers;
          for (const Link& link : mesh.links()) peers.push_back(link.rank);
          EXPECT_EQ(peers, topology.peers_of(rank));
        });
    for (const Outcome& outcome : outcomes) EXPECT_TRUE(outcome.ok) << outcome.message;
  }
}

TEST(Mesh, OneRanksMismatchEndsAllThatWait) {
  // Rank 2 has another model. Rank 0 tells that to rank 1 too, which waits for rank 2 itself.
  const Topology topology{ServerMode::distributed, 3, 0};
  const auto outcomes = run_ranks(topology, [&](int rank, MeshSpec spec, Listener listener) {
    if (rank == 2) {
      std::this_thread::sleep_for(milliseconds(100));
      spec.identity.model = fingerprint("lenet");
    }
    Mesh::join(spec, std::move(listener));
  });
  for (const Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome.code, Exit::failed);
    EXPECT_LT(outcome.seconds, 10);
    expect_in(outcome.message, {"rank 2 (127.0.0.1:", "model"});
  }
}

TEST(Mesh, NobodyListensToTheWorldWithoutAKey) {
  MeshSpec spec;
  spec.topology.size = 2;
  spec.addresses = {{"0.0.0.0", 0}, {"127.0.0.1", 0}};
  spec.timeout = milliseconds(200);
  try {
    Mesh::join(spec);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::usage);
    expect_in(error.what(), {"0.0.0.0", "keygen"});
  }
  spec.key = Key(sha256("secret"));
  try {
    Mesh::join(spec);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::timed_out) << error.what();  // It did listen.
  }
}

TEST(Mesh, NodefilesThatCannotBe) {
  MeshSpec spec;
  spec.topology.size = 2;
  spec.addresses = {{"127.0.0.1", 7000}, {"127.0.0.1", 7000}};
  EXPECT_THROW(Mesh::join(spec), Error);
  spec.addresses.pop_back();
  EXPECT_THROW(Mesh::join(spec), Error);
  spec.addresses.push_back({"127.0.0.1", 7001});
  spec.rank = 2;
  EXPECT_THROW(Mesh::join(spec), Error);
}

}  // namespace
}  // namespace duplex::net
