// Asynchronous runs with a central server that lose workers: every batch is applied once.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <iterator>
#include <thread>

#include "net/exchange/lost_ranks.h"
#include "net/rendezvous/resume.h"
#include "tests/net/cluster.h"

namespace duplex::net {
namespace {

const std::vector<std::size_t> counts{300, 5000, 17};
constexpr std::uint64_t steps = 20;

ExchangeSpec spec_of() {
  ExchangeSpec spec;
  spec.sync = Sync::none;
  spec.chunk_bytes = 8192;
  spec.rate.base = 1.0 / 64;
  return spec;
}

/// Weights of 1 and gradients of 0.5 at a rate of 2^-6: every sum is exact in any order, so the
/// last weights tell how many gradients were applied.
struct Exact : Replica {
  Exact() : Replica(counts) {
    for (auto& values : weights) std::fill(values.begin(), values.end(), 1.0F);
    for (auto& values : gradients) std::fill(values.begin(), values.end(), 0.5F);
  }
  void expect_applied(std::uint64_t batches) const {
    const float last = 1.0F - static_cast<float>(batches) / 128.0F;
    for (const auto& values : weights) {
      EXPECT_EQ(*std::min_element(values.begin(), values.end()), last);
      EXPECT_EQ(*std::max_element(values.begin(), values.end()), last);
    }
  }
};

void train_step(ParameterExchange& exchange) {
  exchange.begin(exchange.next_step());
  for (std::size_t p = 0; p < counts.size(); ++p) exchange.await(p);
  for (std::size_t p = counts.size(); p-- > 0;) exchange.push(p);
  exchange.end();
}

/// Returns the batches that it has trained in others' place.
std::uint64_t train_all_leases(ParameterExchange& exchange) {
  std::uint64_t leased = 0;
  while (const auto lease = exchange.next_lease(steps))
    for (std::uint64_t step = lease->steps.first; step < lease->steps.end; ++step, ++leased)
      train_step(exchange);
  return leased;
}

/// Rank 2 ends in the middle of its fourth step: some chunks have had its gradient.
TEST(Leases, OthersTrainWhatALostWorkerHasLeft) {
  std::atomic<std::uint64_t> leased{0};
  std::vector<std::string> log;
  const auto outcomes = run_ranks(
      {ServerMode::central, 4, 0}, [&](int rank, const MeshSpec& mesh, Listener listener) {
        Exact replica;
        ExchangeSpec spec = spec_of();
        if (rank == 0) spec.log = [&](const std::string& line) { log.push_back(line); };
        ParameterExchange exchange(spec, replica.spans(), Mesh::join(mesh, std::move(listener)));
        if (rank == 0) {
          exchange.finish();
          EXPECT_EQ(exchange.lost(), std::vector<int>{2});
          replica.expect_applied(3 * steps);
          const auto by_others = exchange.trained_by_others();
          EXPECT_EQ(by_others[1][0] + by_others[1][2], leased);
          EXPECT_EQ(by_others[1][1], 0U);
          return;
        }
        for (std::uint64_t step = 0; step < steps; ++step) {
          if (rank == 2 && step == 3) {
            exchange.begin(step);
            for (std::size_t p = 0; p < counts.size(); ++p) exchange.await(p);
            exchange.push(1);
            throw Error("it has had enough");
          }
          train_step(exchange);
        }
        leased += train_all_leases(exchange);
        exchange.finish();
        EXPECT_EQ(exchange.lost(), std::vector<int>{2}) << "the server tells its workers";
        replica.expect_applied(3 * steps);
      });
  for (const std::size_t rank : {0U, 1U, 3U})
    EXPECT_TRUE(outcomes[rank].ok) << outcomes[rank].message;
  EXPECT_FALSE(outcomes[2].ok);
  EXPECT_EQ(leased, steps - 3);
  ASSERT_EQ(log.size(), 1U);
  EXPECT_NE(log[0].find("going on without rank 2"), std::string::npos) << log[0];
}

TEST(Leases, LostRanksComeBackAsTheyWereSentOrAreRefused) {
  for (const std::vector<int>& ranks : {std::vector<int>{}, {1}, {1, 3}}) {
    const std::string bytes = encode_ranks(ranks);
    EXPECT_EQ(decode_ranks(bytes, 4), ranks);
    EXPECT_THROW(decode_ranks(bytes + "x", 4), ProtocolError);
    EXPECT_THROW(decode_ranks(bytes.substr(1), 4), ProtocolError);
  }
  for (const std::vector<int>& wrong : {std::vector<int>{4}, {2, 2}, {3, 1}, {-1}})
    EXPECT_THROW(decode_ranks(encode_ranks(wrong), 4), ProtocolError);
  EXPECT_THROW(decode_ranks("\xff\xff\xff\xff", 4), ProtocolError);
}

/// The worker is lost twice, once before anybody has told how many steps there are, and comes back.
void comes_back(int size) {
  const Topology topology{ServerMode::central, size, 0};
  std::atomic<bool> last_life{false};
  const auto outcomes = run_ranks(topology, [&](int rank, const MeshSpec& mesh, Listener listener) {
    MeshSpec own = mesh;
    own.takes_back = rank == 0;
    const auto join = [&](Listener with) {
      Mesh joined = Mesh::join(own, std::move(with));
      const auto point = agree_to_begin(joined, {{}, false, true}, own.timeout);
      EXPECT_EQ(point && point->late, point.has_value());
      return std::make_pair(std::move(joined), point);
    };
    auto first = join(std::move(listener));
    const auto workers = static_cast<std::uint64_t>(size - 1);
    if (rank == 0) {
      Exact replica;
      ParameterExchange exchange(spec_of(), replica.spans(), std::move(first.first));
      exchange.finish();
      EXPECT_TRUE(exchange.lost().empty());
      EXPECT_EQ(exchange.returned(), (std::vector<int>{1, 1}));
      replica.expect_applied(workers * steps);
      return;
    }
    std::optional<std::pair<Mesh, std::optional<ResumePoint>>> joined(std::move(first));
    for (int life = 0; rank == 1 && life < 2; ++life) {
      Exact replica;
      ExchangeSpec spec = spec_of();
      if (joined->second) spec.first_step = joined->second->positions[0];
      EXPECT_EQ(spec.first_step, life == 0 ? 0U : 3U);
      try {
        ParameterExchange exchange(spec, replica.spans(), std::move(joined->first));
        for (int step = 0; step < 3; ++step) train_step(exchange);
        exchange.await_all();
        exchange.begin(exchange.next_step());
        exchange.push(2);
        throw Error("it falls");
      } catch (const Error&) {
      }
      joined.emplace(join(Listener()));
      ASSERT_TRUE(joined->second);
    }
    Exact replica;
    ExchangeSpec spec = spec_of();
    std::uint64_t end = steps;
    if (joined->second) {
      spec.first_step = joined->second->positions[0];
      end = std::min(steps, joined->second->ends[0]);
    }
    ParameterExchange exchange(spec, replica.spans(), std::move(joined->first));
    if (rank == 1) last_life = true;
    while (exchange.next_step() < end) {
      train_step(exchange);
      // The others do not end before.
      while (rank != 1 && !last_life) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    train_all_leases(exchange);
    exchange.finish();
    replica.expect_applied(workers * steps);
  });
  for (const Outcome& outcome : outcomes) EXPECT_TRUE(outcome.ok) << outcome.message;
}

TEST(Leases, ALostWorkerComesBack) {
  comes_back(3);
}

/// Nobody else could go on meanwhile.
TEST(Leases, TheOnlyWorkerComesBack) {
  comes_back(2);
}

/// The server closes the connections of a worker's earlier lives.
TEST(Leases, AWorkerThatOftenComesBackTakesNoMoreFiles) {
  constexpr std::size_t lives = 12;
  std::vector<std::ptrdiff_t> open;
  const auto outcomes = run_ranks(
      {ServerMode::central, 2, 0}, [&](int rank, const MeshSpec& mesh, Listener listener) {
        MeshSpec own = mesh;
        own.takes_back = rank == 0;
        const auto join = [&](Listener with) {
          Mesh joined = Mesh::join(own, std::move(with));
          const auto point = agree_to_begin(joined, {{}, false, true}, own.timeout);
          return std::make_pair(std::move(joined), point ? point->positions[0] : 0);
        };
        Exact replica;
        ExchangeSpec spec = spec_of();
        auto joined = std::make_optional(join(std::move(listener)));
        if (rank == 0) {
          ParameterExchange exchange(spec, replica.spans(), std::move(joined->first));
          exchange.finish();
          EXPECT_EQ(exchange.returned().size(), lives);
          return;
        }
        for (std::size_t life = 0; life < lives; ++life) {
          spec.first_step = joined->second;
          {
            ParameterExchange exchange(spec, replica.spans(), std::move(joined->first));
            train_step(exchange);
          }
          joined.emplace(join(Listener()));
          open.push_back(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
        }
        spec.first_step = joined->second;
        ParameterExchange exchange(spec, replica.spans(), std::move(joined->first));
        while (exchange.next_step() < steps) train_step(exchange);
        train_all_leases(exchange);
        exchange.finish();
      });
  for (const Outcome& outcome : outcomes) EXPECT_TRUE(outcome.ok) << outcome.message;
  ASSERT_EQ(open.size(), lives);
  EXPECT_EQ(open.back(), open.front());
}

/// A server whose only worker does not come back gives it up after the time-out.
TEST(Leases, NobodyComesBack) {
  const auto outcomes = run_ranks(
      {ServerMode::central, 2, 0}, [&](int rank, const MeshSpec& mesh, Listener listener) {
        MeshSpec own = mesh;
        own.takes_back = rank == 0;
        Exact replica;
        ExchangeSpec spec = spec_of();
        spec.timeout = std::chrono::milliseconds(1500);
        Mesh joined = Mesh::join(own, std::move(listener));
        agree_to_begin(joined, {{}, false, true}, own.timeout);
        ParameterExchange exchange(spec, replica.spans(), std::move(joined));
        if (rank == 1) {
          train_step(exchange);
          return;
        }
        exchange.finish();
      });
  EXPECT_FALSE(outcomes[0].ok);
  EXPECT_EQ(outcomes[0].code, Exit::peer_lost) << outcomes[0].message;
  EXPECT_GE(outcomes[0].seconds, 1.4);
  EXPECT_LT(outcomes[0].seconds, 10);
}

}  // namespace
}  // namespace duplex::net
