// Runs whose frames are protected: they train the same bits, and one bit that is changed on the way
// ends them.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/net/cluster.h"
#include "tests/net/rank_zero.h"

namespace duplex::net {
namespace {

using Weights = std::vector<std::vector<float>>;
using Seal = ProtectionSpec::Seal;

const std::vector<std::size_t> counts{70000, 1, 3333};
constexpr std::uint64_t steps = 4;
constexpr std::uint64_t nowhere = ~std::uint64_t{0};

/// Stands between a rank and its peer, and flips one bit of a byte that goes to the peer.
class Tamperer {
 public:
  Tamperer(std::uint16_t port, std::uint64_t at)
      : listener_(Listener::open({"127.0.0.1", 0})), thread_([this, port, at] { run(port, at); }) {}
  ~Tamperer() {
    over_ = true;
    thread_.join();
  }
  std::uint16_t port() const { return listener_.port(); }

 private:
  void run(std::uint16_t port, std::uint64_t at) {
    Socket from;
    while (!over_ && !(from = listener_.accept(milliseconds(20)))) {
    }
    if (over_) return;
    Socket to = Socket::connect({"127.0.0.1", port}, "", soon());
    std::thread back([&] { pass(to, from, nowhere); });
    pass(from, to, at);
    back.join();
  }
  static void pass(Socket& from, Socket& to, std::uint64_t at) {
    std::vector<std::uint8_t> bytes(65536);
    std::uint64_t passed = 0;
    try {
      for (;;) {
        const std::ptrdiff_t some = from.peek(bytes.data(), bytes.size());
        if (some < 0) break;
        if (some == 0) {
          std::this_thread::sleep_for(milliseconds(1));
          continue;
        }
        const auto size = static_cast<std::size_t>(some);
        from.read_exact(bytes.data(), size, soon(), "tampering");
        if (at >= passed && at < passed + size) bytes[at - passed] ^= 0x40;
        passed += size;
        to.write_all(bytes.data(), size, nullptr, 0, soon(), "tampering");
      }
    } catch (const NetworkError&) {
    }
    to.end_sending();
  }

  Listener listener_;
  std::atomic<bool> over_{false};
  std::thread thread_;
};

struct TwoRanks {
  std::vector<Outcome> outcomes;
  std::vector<Weights> weights;  ///< By rank.
};

/// Two ranks train. The byte at `tampered` that rank 1 sends is changed on the way.
TwoRanks run(const ProtectionSpec& protection, std::uint64_t tampered = nowhere) {
  const Topology topology{ServerMode::distributed, 2, 0};
  TwoRanks result;
  result.weights.resize(2);
  std::unique_ptr<Tamperer> tamperer;
  std::mutex mutex;
  result.outcomes = run_ranks(topology, [&](int rank, MeshSpec mesh, Listener listener) {
    mesh.key = Key(sha256("secret"));
    mesh.protection = protection;
    if (rank == 1 && tampered != nowhere) {
      const std::lock_guard<std::mutex> lock(mutex);
      tamperer = std::make_unique<Tamperer>(mesh.addresses[0].port, tampered);
      mesh.addresses[0].port = tamperer->port();
    }
    Replica replica(counts);
    replica.set_initial();
    ExchangeSpec spec;
    spec.chunk_bytes = 65536;
    ParameterExchange exchange(spec, replica.spans(), Mesh::join(mesh, std::move(listener)));
    train(exchange, replica, rank, steps);
    exchange.finish();
    result.weights[static_cast<std::size_t>(rank)] = replica.weights;
  });
  return result;
}

/// A byte in the middle of the first gradients that rank 1 sends: far behind the handshake, and
/// before the 4 x 293 KB of the whole run are over.
constexpr std::uint64_t in_a_gradient = 100000;

TEST(ProtectedRun, TrainsTheBitsOfOneMachine) {
  const Weights expected = train_alone(counts, 2, steps, {}, {});
  for (const ProtectionSpec protection :
       {ProtectionSpec{Seal::always, false}, ProtectionSpec{Seal::never, true},
        ProtectionSpec{Seal::never, false}}) {
    const TwoRanks trained = run(protection);
    for (std::size_t rank = 0; rank < 2; ++rank) {
      // finish() has compared the ledger with the kernel's counters.
      EXPECT_TRUE(trained.outcomes[rank].ok) << trained.outcomes[rank].message;
      EXPECT_EQ(trained.weights[rank], expected) << name_of(protection.of(true));
    }
  }
}

TEST(ProtectedRun, EndsWhereOneBitIsChangedOnTheWay) {
  for (const ProtectionSpec protection :
       {ProtectionSpec{Seal::always, false}, ProtectionSpec{Seal::never, true}}) {
    const TwoRanks trained = run(protection, in_a_gradient);
    EXPECT_EQ(trained.outcomes[0].code, Exit::peer_lost);
    EXPECT_NE(trained.outcomes[0].message.find("rank 1 (127.0.0.1:"), std::string::npos);
    EXPECT_NE(trained.outcomes[0].message.find("bytes have come that it did not send so"),
              std::string::npos)
        << trained.outcomes[0].message;
    EXPECT_EQ(trained.outcomes[1].code, Exit::peer_lost) << trained.outcomes[1].message;
  }
}

TEST(ProtectedRun, AndAPlainOneTrainsOnWithIt) {
  // The tests above would show nothing if the byte were none that matters.
  const Weights expected = train_alone(counts, 2, steps, {}, {});
  int wrong = 0;
  for (std::uint64_t byte = 0; byte < sizeof(float); ++byte) {
    const TwoRanks trained = run({Seal::never, false}, in_a_gradient + byte);
    EXPECT_TRUE(trained.outcomes[0].ok) << trained.outcomes[0].message;
    wrong += trained.weights[0] != expected ? 1 : 0;
  }
  EXPECT_GT(wrong, 0);
}

TEST(ProtectedRun, RanksMustAgreeOnTheProtection) {
  const Key key(sha256("secret"));
  RankZero zero(2, milliseconds(20000), key);
  expect_in(zero.join(1, [](MeshSpec& spec) { spec.protection.seal = Seal::always; }),
            {"the protection of frames differs: rank 1 (127.0.0.1:", "wants 'sealed'",
             "rank 0 (127.0.0.1:", "'plain'", "--secure"});
  zero.wait();
  EXPECT_FALSE(zero.outcome.ok) << "a rank that has the key cannot be of this run";
}

TEST(ProtectedRun, NeedsAKeyToSeal) {
  MeshSpec spec;
  spec.topology = {ServerMode::distributed, 2, 0};
  spec.addresses = {{"127.0.0.1", 1}, {"127.0.0.1", 2}};
  spec.protection.seal = Seal::always;
  try {
    Mesh::join(spec);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::usage);
    expect_in(error.what(), {"without a cluster key", "--key"});
  }
}

TEST(ProtectionSpec, SealsBeyondLoopbackUnlessToldOtherwise) {
  EXPECT_EQ(ProtectionSpec{}.of(false), Protection::sealed);
  EXPECT_EQ(ProtectionSpec{}.of(true), Protection::none);
  EXPECT_EQ((ProtectionSpec{Seal::beyond_loopback, true}.of(true)), Protection::checksum);
  EXPECT_EQ((ProtectionSpec{Seal::always, true}.of(true)), Protection::sealed);
  EXPECT_EQ((ProtectionSpec{Seal::never, true}.of(false)), Protection::checksum);
  EXPECT_EQ((ProtectionSpec{Seal::never, false}.of(false)), Protection::none);
}

}  // namespace
}  // namespace duplex::net
