// Meeting: ranks that belong together find each other whoever else knocks; those that do not are
// told why, both sides by name.
#include "net/mesh.h"

#include <gtest/gtest.h>

#include <mutex>
#include <thread>

#include "tests/net/cluster.h"
#include "tests/net/raw_peer.h"

namespace duplex::net {
namespace {

using std::chrono::milliseconds;

/// Rank 0 of a run of `size`, listening in a thread.
class RankZero {
 public:
  explicit RankZero(int size = 2, milliseconds timeout = milliseconds(20000), const Key& key = {},
                    const Identity& identity = test_identity()) {
    Topology topology{ServerMode::distributed, size, 0};
    Listener listener = Listener::open({"127.0.0.1", 0});
    spec.topology = topology;
    spec.identity = identity;
    spec.timeout = timeout;
    spec.key = key;
    spec.addresses.assign(static_cast<std::size_t>(size), {"127.0.0.1", 0});
    spec.addresses[0].port = listener.port();
    MeshSpec mine = spec;
    mine.log = [this](const std::string& line) {
      const std::lock_guard<std::mutex> lock(mutex_);
      log_ += line + "\n";
    };
    thread_ = std::thread([this, mine, listener = std::move(listener)]() mutable {
      try {
        mesh = Mesh::join(mine, std::move(listener));
        outcome.ok = true;
      } catch (const Error& error) {
        outcome.code = error.code;
        outcome.message = error.what();
      }
    });
  }
  ~RankZero() { wait(); }
  void wait() {
    if (thread_.joinable()) thread_.join();
  }
  Socket visit() const { return Socket::connect(spec.addresses[0], "", soon()); }
  /// Joins as `rank` with what `change` made of rank 0's spec; returns what it was told, "" if it
  /// got in.
  std::string join(int rank, const std::function<void(MeshSpec&)>& change = {}) const {
    MeshSpec other = spec;
    other.rank = rank;
    if (change) change(other);
    try {
      Mesh::join(other);
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  }
  std::string log() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return log_;
  }

  MeshSpec spec;
  Mesh mesh;
  Outcome outcome;

 private:
  std::thread thread_;
  std::mutex mutex_;
  std::string log_;
};

void expect_in(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(Handshake, APeerMadeFromTheDescriptionGetsIn) {
  RankZero zero;
  Socket socket = zero.visit();
  EXPECT_EQ(raw_greet(socket, {}), "");
  zero.wait();
  ASSERT_TRUE(zero.outcome.ok) << zero.outcome.message;
  ASSERT_EQ(zero.mesh.links().size(), 1U);
  EXPECT_EQ(zero.mesh.links()[0].rank, 1);
  std::uint64_t received = 0, sent = 0;
  for (const FrameRecord& frame : zero.mesh.links()[0].handshake)
    (frame.sent ? sent : received) += frame.bytes;
  const Socket& socket_of_zero = zero.mesh.links()[0].socket;
  const Deadline acknowledged = Clock::now() + milliseconds(5000);
  while (socket_of_zero.counters().sent < sent && Clock::now() < acknowledged)
    std::this_thread::sleep_for(milliseconds(1));
  const KernelCounters kernel = socket_of_zero.counters();
  if (!kernel.known) GTEST_SKIP() << "this kernel counts no bytes in TCP_INFO";
  EXPECT_EQ(received, kernel.received);
  EXPECT_EQ(sent, kernel.sent);
}

TEST(Handshake, WithAKey) {
  RawSelf self;
  self.key = Key(sha256("secret"));
  RankZero zero(2, milliseconds(20000), self.key);
  {  // One that does not know it costs its own connection only.
    Socket socket = zero.visit();
    expect_in(raw_greet(socket, {}), {"rank 1 (127.0.0.1:", "rank 0 (127.0.0.1:", "key"});
  }
  {
    Socket socket = zero.visit();
    RawSelf wrong = self;
    wrong.key = Key(sha256("guess"));
    expect_in(raw_greet(socket, wrong), {"key"});
  }
  expect_in(zero.join(1, [](MeshSpec& spec) { spec.key = {}; }),
            {"rank 1 (127.0.0.1:", "rank 0 (127.0.0.1:", "cluster key"});
  Socket socket = zero.visit();
  EXPECT_EQ(raw_greet(socket, self), "");
  zero.wait();
  EXPECT_TRUE(zero.outcome.ok) << zero.outcome.message;
  expect_in(zero.log(), {"turned away: rank 1 (127.0.0.1:", "rank 1 (127.0.0.1:"});
}

TEST(Handshake, AReplayedResponseProvesNothing) {
  // The same words to another challenge: the proof covers both nonces.
  const Key key(sha256("secret"));
  RankZero zero(2, milliseconds(20000), key);
  Bytes said;
  for (const bool replay : {false, true}) {
    Socket socket = zero.visit();
    RawFrame hello;
    hello.kind = 1;
    put(hello.payload, std::int32_t{1});
    put(hello.payload, std::int32_t{0});
    put_digest(hello.payload, Digest{});
    send_raw(socket, hello);
    const RawFrame challenge = receive_raw(socket);
    RawFrame response;
    response.kind = 3;
    if (!replay) {
      put(response.payload, std::int32_t{2});
      for (const char* text : {"test"}) put_text(response.payload, text);
      for (const char* text : {"model", "data", "settings"}) {
        put_text(response.payload, text);
        put_digest(response.payload, sha256(text));
      }
      Bytes blank = response.payload;
      put_digest(blank, Digest{});
      std::string text = std::string("duplex 1 connects") + '\0';
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

TEST(Handshake, TheListenerMustProveTheKeyToo) {
  // A listener that accepts anybody, without the key.
  Listener listener = Listener::open({"127.0.0.1", 0});
  std::thread impostor([&] {
    Socket socket = listener.accept(milliseconds(20000));
    receive_raw(socket);
    RawFrame challenge;
    challenge.kind = 2;
    challenge.payload.assign(32, 7);
    send_raw(socket, challenge);
    receive_raw(socket);
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
  try {
    Mesh::join(spec);
    ADD_FAILURE() << "believed an impostor";
  } catch (const Error& error) {
    expect_in(error.what(), {"rank 0 (127.0.0.1:", "cluster key"});
  }
  impostor.join();
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
      {"ranks",
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
    s.identity.model.text = std::string(5000, 'm');  // Words do not count, the digest does.
  });
  expect_in(told, {"settings", "rank 0 (127.0.0.1:"});
}

TEST(Handshake, AnotherVersionIsNamed) {
  RankZero zero;
  Socket socket = zero.visit();
  RawSelf self;
  self.version = 2;
  expect_in(raw_greet(socket, self), {"version 2", "version 1", "127.0.0.1:"});
  EXPECT_EQ(zero.join(1), "");
  zero.wait();
  EXPECT_TRUE(zero.outcome.ok) << "one stranger's version ended the run: " << zero.outcome.message;
}

TEST(Mesh, StrangersCostNothing) {
  RankZero zero(3);
  // Silent, garbage, a huge length, half a hello, another job, gone at once; all still there.
  std::vector<Socket> strangers;
  strangers.reserve(6);
  for (int i = 0; i < 6; ++i) strangers.push_back(zero.visit());
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
  expect_in(raw_greet(strangers[4], elsewhere), {"job 'other'", "job 'test'"});
  strangers[5] = Socket();
  while (zero.log().find("does not speak Duplex's protocol") == std::string::npos ||
         zero.log().find("job 'other'") == std::string::npos)
    std::this_thread::sleep_for(milliseconds(1));

  Socket one = zero.visit(), two = zero.visit();
  RawSelf self;
  self.size = 3;
  EXPECT_EQ(raw_greet(one, self), "");
  self.rank = 2;
  EXPECT_EQ(raw_greet(two, self), "");
  zero.wait();
  EXPECT_TRUE(zero.outcome.ok) << zero.outcome.message;
  EXPECT_EQ(zero.mesh.links().size(), 2U);
}

TEST(Mesh, ARankGivenTwiceIsNamedTwice) {
  RankZero zero(3, milliseconds(1500));
  RawSelf self;
  self.size = 3;
  Socket first = zero.visit();
  EXPECT_EQ(raw_greet(first, self), "");
  Socket second = zero.visit();
  expect_in(raw_greet(second, self),
            {"rank 1 is there twice", first.local_address(), second.local_address()});
  // Rank 2 never comes; the line stands in what is said then.
  zero.wait();
  EXPECT_EQ(zero.outcome.code, Exit::timed_out);
  expect_in(zero.outcome.message, {"in vain for rank 2", "rank 1 is there twice", "1.5 s"});
  EXPECT_EQ(zero.outcome.message.find("for rank 1"), std::string::npos);
  // Who was there already is told.
  const RawFrame abort = receive_raw(first);
  EXPECT_EQ(abort.kind, 21);
  EXPECT_EQ(get(abort.payload, 0, 4), 4U);
  expect_in(raw_text(abort.payload, 4), {"in vain for rank 2"});
}

TEST(Mesh, MissingRanksAreNamedWithTheirAddress) {
  MeshSpec spec;
  spec.topology.size = 2;
  spec.rank = 1;
  std::uint16_t port = 0;
  { port = Listener::open({"127.0.0.1", 0}).port(); }
  spec.addresses = {{"127.0.0.1", port}, {"127.0.0.1", 0}};
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

TEST(Mesh, RanksMayComeInAnyOrder) {
  for (const ServerMode mode : {ServerMode::central, ServerMode::distributed}) {
    const Topology topology{mode, 4, 2};
    std::vector<Mesh> meshes(4);  // They stay until all are there.
    const auto outcomes =
        run_ranks(topology, [&](int rank, const MeshSpec& spec, Listener listener) {
          // The lower, the later; it answers only when it comes.
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
  // Rank 2 has another model: rank 0 says so to rank 1 too, which waits for rank 2 itself.
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
