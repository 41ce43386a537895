// Handshakes: a peer that proves the key and agrees on everything gets in; any other is told why,
// and both sides are named.
#include "net/rendezvous/handshake.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/net/rank_zero.h"

namespace duplex::net {
namespace {

TEST(Handshake, APeerMadeFromTheDescriptionGetsIn) {
  RankZero zero;
  Socket socket = zero.connect();
  EXPECT_EQ(raw_handshake(socket, {}), "");
  zero.wait();
  ASSERT_TRUE(zero.outcome.ok) << zero.outcome.message;
  ASSERT_EQ(zero.mesh.links().size(), 1U);
  EXPECT_EQ(zero.mesh.links()[0].rank, 1);
}

TEST(Handshake, EveryByteOfItIsInTheLedger) {
  RankZero zero;
  Socket socket = zero.connect();
  if (!socket.counters().known)
    GTEST_SKIP() << "this kernel does not tell how many bytes of a connection it sent again "
                    "(Linux 4.19 does): its counters cannot be compared with the ledger's";
  EXPECT_EQ(raw_handshake(socket, {}), "");
  zero.wait();
  ASSERT_EQ(zero.mesh.links().size(), 1U) << zero.outcome.message;
  std::uint64_t received = 0, sent = 0;
  for (const FrameRecord& frame : zero.mesh.links()[0].handshake)
    (frame.sent ? sent : received) += frame.bytes;
  const Socket& socket_of_zero = zero.mesh.links()[0].stream.socket();
  const Deadline acknowledged = Clock::now() + milliseconds(5000);
  while (socket_of_zero.counters().sent < sent && Clock::now() < acknowledged)
    std::this_thread::sleep_for(milliseconds(1));
  const KernelCounters kernel = socket_of_zero.counters();
  EXPECT_GT(kernel.received, 0U);
  EXPECT_EQ(received, kernel.received);
  EXPECT_EQ(sent, kernel.sent);
}

TEST(Handshake, WithAKey) {
  RawSelf self;
  self.key = Key(sha256("secret"));
  RankZero zero(2, milliseconds(20000), self.key);
  {  // A peer that does not know the key loses its own connection only.
    Socket socket = zero.connect();
    expect_in(raw_handshake(socket, {}), {"rank 1 (127.0.0.1:", "rank 0 (127.0.0.1:", "key"});
  }
  {
    Socket socket = zero.connect();
    RawSelf wrong = self;
    wrong.key = Key(sha256("guess"));
    expect_in(raw_handshake(socket, wrong), {"key"});
  }
  expect_in(zero.join(1,
                      [](MeshSpec& spec) {
                        spec.key = {};
                        spec.timeout = milliseconds(1000);
                      }),
            {"rank 1 (127.0.0.1)", "rank 0 (127.0.0.1:", "cluster key"});
  Socket socket = zero.connect();
  EXPECT_EQ(raw_handshake(socket, self), "");
  zero.wait();
  EXPECT_TRUE(zero.outcome.ok) << zero.outcome.message;
  expect_in(zero.log(), {"turned away: rank 1 (127.0.0.1)", "rank 1 (127.0.0.1:"});
}

TEST(Handshake, AReplayedResponseProvesNothing) {
  // A replayed response to another challenge must fail, since the proof covers both nonces.
  const Key key(sha256("secret"));
  RankZero zero(2, milliseconds(20000), key);
  Bytes said;
  for (const bool replay : {false, true}) {
    Socket socket = zero.connect();
    RawFrame hello;
    hello.kind = 1;
    put(hello.payload, std::int32_t{1});
    put(hello.payload, std::int32_t{0});
    put_digest(hello.payload, Digest{});
    put_digest(hello.payload, Digest{});
    send_raw(socket, hello);
    const RawFrame challenge = receive_raw(socket);
    RawFrame response;
    response.kind = 3;
    if (!replay) {
      put(response.payload, std::int32_t{2});
      put(response.payload, std::uint8_t{0});
      put(response.payload, std::uint8_t{0});
      for (const char* text : {"test"}) put_text(response.payload, text);
      for (const char* text : {"model", "data", "settings", "start"}) {
        put_text(response.payload, text);
        put_digest(response.payload, sha256(text));
      }
      Bytes blank = response.payload;
      put_digest(blank, Digest{});
      std::string text = std::string("duplex 6 connects") + '\0';
      for (const Bytes& part : {hello.payload, challenge.payload, blank})
        text.append(part.begin(), part.end());
      put_digest(response.payload, key.hmac(text));
      said = response.payload;
    } else {
      response.payload = said;
    }
    send_raw(socket, response);
    EXPECT_EQ(receive_raw(socket).kind, replay ? 5 : 4);
  }
  EXPECT_EQ(zero.join(1), "");
}

/// Answers a hello with a challenge, and reads the response.
void challenge_raw(Socket& socket) {
  RawFrame challenge;
  challenge.kind = 2;
  challenge.payload.assign(64, 7);
  send_raw(socket, challenge);
  receive_raw(socket);
}

TEST(Handshake, TheListenerMustProveTheKeyToo) {
  // A listener that accepts anybody, without the key.
  Listener listener = Listener::open({"127.0.0.1", 0});
  std::thread impostor([&] {
    Socket socket = listener.accept(milliseconds(20000));
    receive_raw(socket);
    challenge_raw(socket);
    RawFrame accept;
    accept.kind = 4;
    accept.payload.assign(40, 9);
    send_raw(socket, accept);
    char byte = 0;
    EXPECT_THROW(socket.read_exact(&byte, 1, soon(), "testing"), NetworkError);
  });
  MeshSpec spec;
  spec.topology.size = 2;
  spec.rank = 1;
  spec.addresses = {{"127.0.0.1", listener.port()}, {"127.0.0.1", 0}};
  spec.identity = test_identity();
  spec.key = Key(sha256("secret"));
  spec.timeout = milliseconds(1500);
  std::string log;
  spec.log = [&](const std::string& line) { log += line + "\n"; };
  try {
    Mesh::join(spec);
    ADD_FAILURE() << "believed an impostor";
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::timed_out);
    expect_in(error.what(), {"rank 0 (127.0.0.1:", "cluster key"});
  }
  expect_in(log, {"tries again until it is right: ", "cluster key"});
  impostor.join();
}

/// Somebody answers at rank 0's address before rank 0 does, and turns everybody away, with escape
/// sequences in the reason. It costs the run nothing, and no terminal sees them.
TEST(Handshake, ARejectThatProvesNothingEndsNothing) {
  for (const bool after_the_challenge : {false, true}) {
    Listener listener = Listener::open({"127.0.0.1", 0});
    MeshSpec spec;
    spec.topology.size = 2;
    spec.addresses = {{"127.0.0.1", listener.port()}, {"127.0.0.1", 0}};
    spec.identity = test_identity();
    spec.key = Key(sha256("secret"));
    spec.timeout = milliseconds(20000);
    std::thread there([&] {
      for (int i = 0; i < 3; ++i) {
        Socket socket = listener.accept(milliseconds(20000));
        receive_raw(socket);
        if (after_the_challenge) challenge_raw(socket);
        RawFrame reject;
        reject.kind = 5;
        put_text(reject.payload, "\x1b]0;owned\x07 go away\n\xc2\x9b\x9b");
        if (i == 2) reject.payload.insert(reject.payload.end(), 32, 9);  // A proof that is none.
        send_raw(socket, reject);
      }
      const std::uint16_t port = listener.port();
      listener = Listener();
      EXPECT_NO_THROW(Mesh::join(spec, Listener::open({"127.0.0.1", port})));
    });
    MeshSpec one = spec;
    one.rank = 1;
    std::string log;
    one.log = [&](const std::string& line) { log += line + "\n"; };
    EXPECT_NO_THROW(Mesh::join(one));
    there.join();
    expect_in(log, {"tries again until it is right: ?]0;owned? go away????\n"});
    EXPECT_EQ(log.find('\x1b'), std::string::npos);
  }
}

struct Difference {
  const char* what;
  std::function<void(MeshSpec&)> change;
};

TEST(Handshake, RanksThatDifferAreBothTold) {
  const std::vector<Difference> differences{
      {"model", [](MeshSpec& s) { s.identity.model = fingerprint("lenet"); }},
      {"data set", [](MeshSpec& s) { s.identity.data = fingerprint("mnist"); }},
      {"settings", [](MeshSpec& s) { s.identity.settings = fingerprint("adam"); }},
      {"starting weights", [](MeshSpec& s) { s.identity.start = fingerprint("other"); }},
      {"the nodefiles differ",
       [](MeshSpec& s) {
         s.topology.size = 3;
         s.addresses.push_back({"127.0.0.1", 0});
         s.addresses[1] = {"127.0.0.1", 0};
       }},
  };
  for (const Difference& difference : differences) {
    RankZero zero;
    const std::string told = zero.join(1, difference.change);
    zero.wait();
    EXPECT_FALSE(zero.outcome.ok);
    EXPECT_EQ(zero.outcome.code, Exit::failed);
    for (const std::string& text : {told, zero.outcome.message})
      expect_in(text, {difference.what, "rank 1 (127.0.0.1:", "rank 0 (127.0.0.1:"});
    EXPECT_EQ(told.find('\n'), std::string::npos);
  }
}

TEST(Handshake, NodefilesWithTheSameMachinesInAnotherOrderAreToldApart) {
  RankZero zero(3);
  const std::string told = zero.join(2, [](MeshSpec& s) {
    s.addresses[1] = {"127.1", s.addresses[0].port};  // Rank 0's, written in another way.
  });
  zero.wait();
  EXPECT_EQ(zero.outcome.code, Exit::failed);
  for (const std::string& text : {told, zero.outcome.message})
    expect_in(text, {"the nodefiles differ",
                     "rank 2 (127.0.0.1:", " takes rank 0 (127.0.0.1:", " for rank 1: "});
}

TEST(Handshake, OfSettingsThoseThatDifferAreTold) {
  const auto told = [](const std::string& ours, const std::string& theirs) {
    Identity identity = test_identity();
    identity.settings = fingerprint(ours);
    RankZero zero(2, milliseconds(20000), {}, identity);
    return zero.join(1, [&](MeshSpec& s) { s.identity.settings = fingerprint(theirs); });
  };
  const std::string batches = told("sync join, batch 32, seed 1", "sync join, batch 3, seed 1");
  expect_in(batches, {"settings differ: rank 1 ", "has 'batch 3', rank 0 ", " has 'batch 32': "});
  expect_in(told("batch 32", "batch 32, mirror"), {" has 'mirror', rank 0 ", " has no 'mirror': "});
}

TEST(Handshake, TextsOfAnyLengthFit) {
  RankZero zero;
  const std::string told = zero.join(1, [](MeshSpec& s) {
    s.identity.settings = fingerprint(std::string(100000, 'x'));
    s.identity.model.text = std::string(5000, 'm');  // The digests are compared, not the texts.
  });
  expect_in(told, {"settings", "rank 0 (127.0.0.1:"});
}

TEST(Handshake, AnotherVersionIsNamed) {
  RankZero zero;
  Socket socket = zero.connect();
  RawSelf self;
  self.version = 4;
  expect_in(raw_handshake(socket, self), {"version 4", "version 6", "127.0.0.1:"});
  EXPECT_EQ(zero.join(1), "");
  zero.wait();
  EXPECT_TRUE(zero.outcome.ok) << "one stranger's version ended the run: " << zero.outcome.message;
}

/// A rank that ends since another was lost must not make those that it tells end as if they had
/// failed: they would not be started again.
TEST(Handshake, ARankThatCannotStartSaysWithWhatCodeItEnds) {
  for (const Exit code : {Exit::peer_lost, Exit::failed}) {
    RankZero zero(2);
    MeshSpec one = zero.spec;
    one.rank = 1;
    Mesh::tell_cannot_start(one, {"rank 7 is lost", code});
    zero.wait();
    EXPECT_EQ(zero.outcome.code, code);
    expect_in(zero.outcome.message, {"rank 1 (127.0.0.1:", "cannot start: rank 7 is lost"});

    // The listening side tells the one that connects.
    Listener listener = Listener::open({"127.0.0.1", 0});
    MeshSpec two = zero.spec;
    two.addresses[0].port = listener.port();
    listener = Listener();
    std::thread telling([&] { Mesh::tell_cannot_start(two, {"rank 7 is lost", code}); });
    one.addresses = two.addresses;
    try {
      Mesh::join(one);
      ADD_FAILURE() << "it got in";
    } catch (const Error& error) {
      EXPECT_EQ(error.code, code) << error.what();
      expect_in(error.what(), {"cannot start: rank 7 is lost"});
    }
    telling.join();
  }
}

}  // namespace
}  // namespace duplex::net
