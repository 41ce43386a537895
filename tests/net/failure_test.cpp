// Runs that go wrong: whatever a rank does, every other ends in time, with the right exit code and
// a line that names the culprit.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <thread>

#include "tests/net/cluster.h"

namespace duplex::net {
namespace {

using std::chrono::milliseconds;

const std::vector<std::size_t> counts{200000, 1000, 300000};

/// Runs ranks as processes, which can be killed and stopped. All that have not ended are killed at
/// the end.
std::vector<Outcome> run_processes(const Topology& topology,
                                   const std::function<void(int, MeshSpec, Listener)>& body,
                                   const std::vector<int>& expected_to_end) {
  Ports ports(topology);
  std::vector<pid_t> pids;
  std::vector<int> pipes;
  const auto start = Clock::now();
  for (int rank = 0; rank < topology.size; ++rank) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    const pid_t pid = ::fork();
    if (pid == 0) {
      std::string result = "0";
      try {
        MeshSpec spec;
        spec.topology = topology;
        spec.rank = rank;
        spec.addresses = ports.addresses;
        spec.identity = test_identity();
        spec.timeout = std::chrono::seconds(20);
        Listener mine = std::move(ports.listeners[static_cast<std::size_t>(rank)]);
        ports.listeners.clear();
        body(rank, spec, std::move(mine));
      } catch (const Error& error) {
        result = std::to_string(static_cast<int>(error.code)) + error.what();
      }
      const ssize_t written = ::write(ends[1], result.data(), result.size());
      ::_exit(written > 0 ? 0 : 99);
    }
    ::close(ends[1]);
    pids.push_back(pid);
    pipes.push_back(ends[0]);
  }
  ports.listeners.clear();
  std::vector<Outcome> outcomes(pids.size());
  for (const int rank : expected_to_end) {
    const auto r = static_cast<std::size_t>(rank);
    char buffer[4096];
    const ssize_t got = ::read(pipes[r], buffer, sizeof buffer);  // It ends with the pipe at the
                                                                  // latest.
    Outcome& outcome = outcomes[r];
    outcome.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (got <= 0) {
      outcome.message = "crashed";
      continue;
    }
    outcome.code = static_cast<Exit>(buffer[0] - '0');
    outcome.ok = outcome.code == Exit::ok;
    outcome.message.assign(buffer + 1, buffer + got);
  }
  for (std::size_t r = 0; r < pids.size(); ++r) {
    ::kill(pids[r], SIGKILL);
    ::waitpid(pids[r], nullptr, 0);
    ::close(pipes[r]);
  }
  return outcomes;
}

/// Trains; in step 2, between two pushes, `rank_to_fall` sends itself `signal`.
void train_until(int rank_to_fall, int signal, int rank, const MeshSpec& mesh, Listener listener,
                 milliseconds timeout) {
  Replica replica(counts);
  replica.set_initial();
  ExchangeSpec spec;
  spec.chunk_bytes = 65536;
  spec.timeout = timeout;
  ParameterExchange exchange(spec, replica.spans(), Mesh::join(mesh, std::move(listener)));
  if (!exchange.is_worker()) {
    if (rank == rank_to_fall) {
      std::this_thread::sleep_for(milliseconds(100));
      ::raise(signal);
    }
    exchange.finish();
    return;
  }
  for (std::uint64_t step = 0;; ++step) {
    exchange.begin(step);
    for (std::size_t p = 0; p < counts.size(); ++p) exchange.await(p);
    for (std::size_t p = counts.size(); p-- > 0;) {
      if (rank == rank_to_fall && step == 2 && p == 0) ::raise(signal);
      exchange.push(p);
    }
    exchange.end();
  }
}

struct Fall {
  ServerMode mode;
  int size, server, rank;
};

class FallenRank : public testing::TestWithParam<Fall> {};

TEST_P(FallenRank, KilledIsALostPeerEverywhere) {
  const Fall& fall = GetParam();
  std::vector<int> others;
  for (int rank = 0; rank < fall.size; ++rank)
    if (rank != fall.rank) others.push_back(rank);
  const auto outcomes = run_processes(
      {fall.mode, fall.size, fall.server},
      [&](int rank, const MeshSpec& mesh, Listener listener) {
        train_until(fall.rank, SIGKILL, rank, mesh, std::move(listener), milliseconds(20000));
      },
      others);
  for (const int rank : others) {
    const Outcome& outcome = outcomes[static_cast<std::size_t>(rank)];
    EXPECT_EQ(outcome.code, Exit::peer_lost) << "rank " << rank << ": " << outcome.message;
    EXPECT_NE(outcome.message.find("rank " + std::to_string(fall.rank) + " (127.0.0.1:"),
              std::string::npos)
        << outcome.message;
    EXPECT_LT(outcome.seconds, 15) << "far below the timeout";
  }
}

TEST_P(FallenRank, StoppedIsATimeoutEverywhere) {
  const Fall& fall = GetParam();
  std::vector<int> others;
  for (int rank = 0; rank < fall.size; ++rank)
    if (rank != fall.rank) others.push_back(rank);
  const auto outcomes = run_processes(
      {fall.mode, fall.size, fall.server},
      [&](int rank, const MeshSpec& mesh, Listener listener) {
        train_until(fall.rank, SIGSTOP, rank, mesh, std::move(listener), milliseconds(1000));
      },
      others);
  for (const int rank : others) {
    const Outcome& outcome = outcomes[static_cast<std::size_t>(rank)];
    EXPECT_EQ(outcome.code, Exit::timed_out) << "rank " << rank << ": " << outcome.message;
    EXPECT_NE(outcome.message.find("rank " + std::to_string(fall.rank) + " (127.0.0.1:"),
              std::string::npos)
        << outcome.message;
    EXPECT_LT(outcome.seconds, 15);
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, FallenRank,
                         testing::Values(Fall{ServerMode::central, 3, 0, 0},
                                         Fall{ServerMode::central, 3, 0, 2},
                                         Fall{ServerMode::distributed, 2, 0, 1},
                                         Fall{ServerMode::distributed, 4, 0, 2}),
                         [](const testing::TestParamInfo<Fall>& info) {
                           return std::string(name_of(info.param.mode)) +
                                  std::to_string(info.param.size) + "rank" +
                                  std::to_string(info.param.rank);
                         });

/// Two workers do `body`: ranks 0 and 1 or, with a central server, ranks 1 and 2. The server does
/// `body` too.
std::vector<Outcome> run_two(ServerMode mode, milliseconds timeout,
                             const std::function<void(int, ParameterExchange&, Replica&)>& body) {
  return run_ranks({mode, mode == ServerMode::central ? 3 : 2, 0},
                   [&](int rank, const MeshSpec& mesh, Listener listener) {
                     Replica replica(counts);
                     replica.set_initial();
                     ExchangeSpec spec;
                     spec.chunk_bytes = 65536;
                     spec.timeout = timeout;
                     ParameterExchange exchange(spec, replica.spans(),
                                                Mesh::join(mesh, std::move(listener)));
                     body(rank, exchange, replica);
                   });
}

/// Runs three steps with a timeout of 700 ms. In the last one rank 1 does `pause` between its await
/// and its push.
std::vector<Outcome> run_with_pause(ServerMode mode,
                                    const std::function<void(ParameterExchange&)>& pause) {
  return run_two(mode, milliseconds(700),
                 [&](int rank, ParameterExchange& exchange, Replica& replica) {
                   if (exchange.is_worker()) {
                     train(exchange, replica, rank, 2);
                     exchange.begin(2);
                     exchange.await_all();
                     if (rank == 1) pause(exchange);
                     for (std::size_t p = counts.size(); p-- > 0;) exchange.push(p);
                     exchange.end();
                   }
                   exchange.finish();
                 });
}

/// Takes three times that timeout, and reports progress.
void make_progress(ParameterExchange& exchange) {
  for (int i = 0; i < 21; ++i) {
    std::this_thread::sleep_for(milliseconds(100));
    exchange.progress_made();
  }
}

TEST(Failure, ARankThatLivesButDoesNotPushTimesOut) {
  for (const ServerMode mode : {ServerMode::central, ServerMode::distributed}) {
    const auto outcomes = run_with_pause(
        mode, [](ParameterExchange&) { std::this_thread::sleep_for(milliseconds(2300)); });
    for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
      EXPECT_EQ(outcomes[rank].code, Exit::timed_out) << outcomes[rank].message;
      EXPECT_NE(outcomes[rank].message.find("rank 1"), std::string::npos) << outcomes[rank].message;
      EXPECT_NE(outcomes[rank].message.find("no gradient of p"), std::string::npos)
          << outcomes[rank].message;
    }
  }
}

TEST(Failure, ARankThatGetsOnIsNotGivenUp) {
  for (const ServerMode mode : {ServerMode::central, ServerMode::distributed}) {
    for (const Outcome& outcome : run_with_pause(mode, make_progress)) {
      EXPECT_TRUE(outcome.ok) << outcome.message;
      EXPECT_GT(outcome.seconds, 2.0);
    }
  }
}

/// Rank 0 says whom it waits for, and says it once within the minute.
TEST(Failure, AStragglerIsNamed) {
  for (const ServerMode mode : {ServerMode::central, ServerMode::distributed}) {
    const int size = mode == ServerMode::central ? 3 : 2;
    std::vector<std::string> logs(static_cast<std::size_t>(size));
    std::atomic<bool> told{false};
    const auto outcomes =
        run_ranks({mode, size, 0}, [&](int rank, const MeshSpec& mesh, Listener listener) {
          Replica replica(counts);
          replica.set_initial();
          ExchangeSpec spec;
          spec.timeout = milliseconds(2000);
          spec.log = [&, rank](const std::string& line) {
            logs[static_cast<std::size_t>(rank)] += line + "\n";
            told = told || rank == 0;
          };
          ParameterExchange exchange(spec, replica.spans(), Mesh::join(mesh, std::move(listener)));
          if (exchange.is_worker()) {
            train(exchange, replica, rank, 2);
            exchange.begin(2);
            exchange.await_all();
            // Rank 0 may be late itself, on a busy machine.
            const auto latest = Clock::now() + std::chrono::seconds(20);
            while (rank == 1 && !told && Clock::now() < latest) make_progress(exchange);
            for (std::size_t p = counts.size(); p-- > 0;) exchange.push(p);
            exchange.end();
          }
          exchange.finish();
        });
    for (const Outcome& outcome : outcomes) EXPECT_TRUE(outcome.ok) << outcome.message;
    EXPECT_EQ(std::count(logs[0].begin(), logs[0].end(), '\n'), 1) << logs[0];
    EXPECT_EQ(logs[0].rfind("waits for rank 1 (127.0.0.1:", 0), 0U) << logs[0];
    // It misses the gradient of step 2, or weights of step 3, which are of that gradient.
    EXPECT_TRUE(logs[0].find(" for step 2 within ") != std::string::npos ||
                logs[0].find(" for step 3 within ") != std::string::npos)
        << logs[0];
    EXPECT_NE(logs[0].find("; it got on 0."), std::string::npos) << logs[0];
    EXPECT_EQ(logs[1], "");
  }
}

/// A server without room for early gradients lets the others wait for rank 1, in the middle of
/// frames that fill the kernel's buffers.
TEST(Failure, WhoWaitsForRoomIsNotGivenUpEither) {
  const std::vector<std::size_t> large{4000000};
  const auto outcomes = run_ranks(
      {ServerMode::central, 4, 0}, [&](int rank, const MeshSpec& mesh, Listener listener) {
        std::vector<float> weights(large[0]), gradient(large[0]);
        ExchangeSpec spec;
        spec.chunk_bytes = std::size_t{1} << 20;
        spec.early_bytes = 0;
        spec.timeout = milliseconds(700);
        ParameterExchange exchange(spec, {{"w", large[0], weights.data(), gradient.data()}},
                                   Mesh::join(mesh, std::move(listener)));
        if (exchange.is_worker()) {
          exchange.begin(0);
          exchange.await(0);
          if (rank == 1) make_progress(exchange);
          exchange.push(0);
          exchange.end();
        }
        exchange.finish();
      });
  for (const Outcome& outcome : outcomes) EXPECT_TRUE(outcome.ok) << outcome.message;
}

/// One worker has done its steps while another still needs four times the time-out for its own.
TEST(Failure, AnAsynchronousWorkerThatIsDoneWaitsForTheOthers) {
  for (const ServerMode mode : {ServerMode::central, ServerMode::distributed}) {
    const int size = mode == ServerMode::central ? 3 : 2;
    const auto outcomes =
        run_ranks({mode, size, 0}, [&](int rank, const MeshSpec& mesh, Listener listener) {
          Replica replica(counts);
          replica.set_initial();
          ExchangeSpec spec;
          spec.sync = Sync::none;
          spec.timeout = milliseconds(700);
          ParameterExchange exchange(spec, replica.spans(), Mesh::join(mesh, std::move(listener)));
          for (std::uint64_t step = 0; exchange.is_worker() && step < 10; ++step) {
            exchange.begin(step);
            for (std::size_t p = 0; p < counts.size(); ++p) exchange.await(p);
            if (rank == size - 1) std::this_thread::sleep_for(milliseconds(300));
            for (std::size_t p = counts.size(); p-- > 0;) exchange.push(p);
            exchange.end();
          }
          exchange.finish();
        });
    for (const Outcome& outcome : outcomes) EXPECT_TRUE(outcome.ok) << outcome.message;
  }
}

TEST(Failure, UnequalNumbersOfBatches) {
  for (const ServerMode mode : {ServerMode::central, ServerMode::distributed}) {
    const auto outcomes = run_two(mode, milliseconds(20000),
                                  [&](int rank, ParameterExchange& exchange, Replica& replica) {
                                    if (exchange.is_worker())
                                      train(exchange, replica, rank, rank == 1 ? 2 : 4);
                                    exchange.finish();
                                  });
    for (const Outcome& outcome : outcomes) {
      EXPECT_FALSE(outcome.ok);
      EXPECT_EQ(outcome.code, Exit::failed) << outcome.message;
      EXPECT_NE(outcome.message.find("as many batches"), std::string::npos) << outcome.message;
      EXPECT_LT(outcome.seconds, 10);
    }
  }
}

TEST(Failure, LeavingWithoutFinishEndsTheRun) {
  for (const ServerMode mode : {ServerMode::central, ServerMode::distributed}) {
    const auto outcomes = run_two(mode, milliseconds(20000),
                                  [&](int rank, ParameterExchange& exchange, Replica& replica) {
                                    if (exchange.is_worker()) train(exchange, replica, rank, 2);
                                    if (rank == 1) throw Error("an image is missing");
                                    exchange.finish();
                                  });
    for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
      if (rank == 1) continue;
      EXPECT_EQ(outcomes[rank].code, Exit::peer_lost) << outcomes[rank].message;
      EXPECT_NE(outcomes[rank].message.find("rank 1"), std::string::npos) << outcomes[rank].message;
      EXPECT_LT(outcomes[rank].seconds, 10);
    }
  }
}

TEST(Failure, CallsOutOfTurnAreErrors) {
  const auto outcomes = run_ranks({}, [&](int, const MeshSpec&, Listener) {
    Replica replica(counts);
    ParameterExchange exchange({}, replica.spans(), Mesh::alone());
    EXPECT_THROW(exchange.push(0), Error);
    EXPECT_THROW(exchange.begin(1), Error);
    exchange.begin(0);
    EXPECT_THROW(exchange.begin(0), Error);
    for (std::size_t p = 0; p < counts.size(); ++p) exchange.await(p);
    exchange.push(0);
    EXPECT_THROW(exchange.push(0), Error);
    EXPECT_THROW(exchange.end(), Error);
    for (std::size_t p = 1; p < counts.size(); ++p) exchange.push(p);
    exchange.end();
    exchange.finish();
  });
  EXPECT_TRUE(outcomes[0].ok) << outcomes[0].message;
}

}  // namespace
}  // namespace duplex::net
