// Runs that go wrong: whatever a rank does, every other ends in time, with the right exit code and
// a line that names the culprit.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <thread>

#include "net/incast.h"
#include "tests/net/cluster.h"
#include "tests/net/raw_peer.h"

namespace duplex::net {
namespace {

using std::chrono::milliseconds;

const std::vector<std::size_t> counts{200000, 1000, 300000};

/// Ranks as processes, which can be killed and stopped. Those that are stopped are killed at the
/// end.
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
    const ssize_t got = ::read(pipes[r], buffer, sizeof buffer);  // Its end, at the latest.
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

/// Trains; at step 2, between two pushes, `rank_to_fall` sends itself `signal`.
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

/// Two workers, ranks 0 and 1 or, beside a central server, 1 and 2, do `body`, as does the server.
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

TEST(Failure, ARankThatLivesButDoesNotPushTimesOut) {
  for (const ServerMode mode : {ServerMode::central, ServerMode::distributed}) {
    const auto body = [&](int rank, ParameterExchange& exchange, Replica& replica) {
      if (exchange.is_worker()) {
        train(exchange, replica, rank, 2);
        exchange.begin(2);
        for (std::size_t p = 0; p < counts.size(); ++p) exchange.await(p);
        if (rank == 1) std::this_thread::sleep_for(milliseconds(2300));
        for (std::size_t p = counts.size(); p-- > 0;) exchange.push(p);
        exchange.end();
      }
      exchange.finish();
    };
    const auto outcomes = run_two(mode, milliseconds(700), body);
    for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
      EXPECT_EQ(outcomes[rank].code, Exit::timed_out) << outcomes[rank].message;
      EXPECT_NE(outcomes[rank].message.find("rank 1"), std::string::npos) << outcomes[rank].message;
      EXPECT_NE(outcomes[rank].message.find("no gradient of p"), std::string::npos)
          << outcomes[rank].message;
    }
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
                                    if (rank == 1) throw Error("a picture is missing");
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

/// A frame that rank 1, which shook hands properly, sends to a distributed rank 0 in step 0.
struct BadFrame {
  const char* name;
  RawFrame frame;
  const char* says;
};

std::vector<BadFrame> bad_frames() {
  // Two ranks, even: 1000 elements whole, 200000 and 300000 in halves of several chunks of 64 KiB.
  RawFrame gradient;
  gradient.kind = 17;
  gradient.payload.assign(65536, 0);
  const auto with = [&](const std::function<void(RawFrame&)>& change) {
    RawFrame frame = gradient;
    change(frame);
    return frame;
  };
  const auto bare = [&](std::uint16_t kind) {
    return with([kind](RawFrame& f) { f.kind = kind, f.payload.clear(); });
  };
  return {
      {"magic", with([](RawFrame& f) { f.magic = 7; }), "its header is none"},
      {"version", with([](RawFrame& f) { f.version = 3; }), "its header is none"},
      {"kind", with([](RawFrame& f) { f.kind = 99; }), "kind 99 during the run"},
      {"hello", with([](RawFrame& f) { f.kind = 1; }), "hello during the run"},
      {"parameter", with([](RawFrame& f) { f.parameter = 3; }), "no such chunk"},
      {"chunk", with([](RawFrame& f) { f.chunk = 1000; }), "no such chunk"},
      {"short", with([](RawFrame& f) { f.payload.resize(64); }), "bytes where"},
      {"huge", with([](RawFrame& f) { f.length = std::uint64_t{1} << 62; }), "bytes where"},
      {"step", with([](RawFrame& f) { f.step = 5; }), "step 0 is due"},
      {"own", with([](RawFrame& f) { f.kind = 16; }), "does not own"},
      {"report", with([](RawFrame& f) { f.kind = 19, f.length = std::uint64_t{1} << 40; }),
       "report of"},
      {"abort", with([](RawFrame& f) { f.kind = 21; }), "abort of"},
      {"done", bare(22), "ended its training out of turn"},
      {"ask", bare(23), "asked for a turn out of turn"},
      {"grant", bare(24), "grant of what was not asked for"},
      {"release", bare(25), "gave back a turn that it never had"},
      {"window", bare(26), "told its window to a rank that shares none"},
      {"long ask", with([](RawFrame& f) { f.kind = 23; }), "ask of"},
  };
}

TEST(Failure, AWrongFrameEndsTheRunAndNamesItsSender) {
  for (const BadFrame& bad : bad_frames()) {
    RawFrame frame = bad.frame;
    const auto outcomes = run_ranks(
        {ServerMode::distributed, 2, 0}, [&](int rank, const MeshSpec& mesh, Listener listener) {
          Replica replica(counts);
          if (rank == 0) {
            ExchangeSpec spec;
            spec.chunk_bytes = 65536;
            ParameterExchange exchange(spec, replica.spans(),
                                       Mesh::join(mesh, std::move(listener)));
            exchange.begin(0);
            for (std::size_t p = 0; p < counts.size(); ++p) exchange.await(p);
            return;
          }
          Socket socket = Socket::connect(mesh.addresses[0], "", soon());
          EXPECT_EQ(raw_greet(socket, {}), "");
          const ShardMap map = ShardMap::distributed(counts, 2, Shards::even, 65536);
          if (frame.payload.size() == 65536) frame.payload.resize(map[0].bytes());
          send_raw(socket, frame);
          // Whatever comes before it: rank 0 says why it ends.
          for (;;) {
            const RawFrame answer = receive_raw(socket);
            if (answer.kind != 21) continue;
            EXPECT_NE(raw_text(answer.payload, 4).find(bad.says), std::string::npos);
            break;
          }
        });
    EXPECT_EQ(outcomes[0].code, Exit::failed) << bad.name;
    EXPECT_NE(outcomes[0].message.find("rank 1 (127.0.0.1:"), std::string::npos)
        << bad.name << ": " << outcomes[0].message;
    EXPECT_NE(outcomes[0].message.find(bad.says), std::string::npos)
        << bad.name << ": " << outcomes[0].message;
    EXPECT_TRUE(outcomes[1].ok) << bad.name << ": " << outcomes[1].message;
  }
}

/// Of three ranks the last, which shook hands properly, tells rank 0 a window.
TEST(Failure, AWindowThatCannotBeIsRefused) {
  struct Told {
    ServerMode mode;
    std::uint64_t bytes;
    const char* says;
  };
  for (const Told& told : {Told{ServerMode::distributed, least_window - 1, "has a window of 65535"},
                           Told{ServerMode::central, least_window, "a rank that shares none"}}) {
    const auto outcomes =
        run_ranks({told.mode, 3, 0}, [&](int rank, MeshSpec mesh, Listener listener) {
          Replica replica(counts);
          if (rank < 2) {
            ParameterExchange exchange({}, replica.spans(), Mesh::join(mesh, std::move(listener)));
            if (exchange.is_worker()) train(exchange, replica, rank, 1);
            exchange.finish();
            return;
          }
          std::vector<Socket> sockets;
          for (int other = 0; other < (told.mode == ServerMode::central ? 1 : 2); ++other) {
            sockets.push_back(
                Socket::connect(mesh.addresses[static_cast<std::size_t>(other)], "", soon()));
            RawSelf self;
            self.rank = 2, self.wanted = other, self.size = 3;
            EXPECT_EQ(raw_greet(sockets.back(), self), "");
          }
          RawFrame frame;
          frame.kind = 26;
          frame.step = told.bytes;
          send_raw(sockets[0], frame);
          while (receive_raw(sockets[0]).kind != 21) {
          }
        });
    EXPECT_EQ(outcomes[0].code, Exit::failed) << outcomes[0].message;
    for (const char* part : {"rank 2 (127.0.0.1:", told.says})
      EXPECT_NE(outcomes[0].message.find(part), std::string::npos) << outcomes[0].message;
    EXPECT_FALSE(outcomes[1].ok);
  }
}

TEST(Failure, AGradientTwiceIsRefused) {
  const auto outcomes = run_ranks(
      {ServerMode::distributed, 2, 0}, [&](int rank, const MeshSpec& mesh, Listener listener) {
        Replica replica(counts);
        if (rank == 0) {
          ParameterExchange exchange({}, replica.spans(), Mesh::join(mesh, std::move(listener)));
          exchange.begin(0);
          for (std::size_t p = 0; p < counts.size(); ++p) exchange.await(p);
          return;
        }
        Socket socket = Socket::connect(mesh.addresses[0], "", soon());
        EXPECT_EQ(raw_greet(socket, {}), "");
        const ShardMap map = ShardMap::distributed(counts, 2, Shards::even);
        RawFrame frame;
        frame.kind = 17;
        frame.payload.resize(map[0].bytes());
        send_raw(socket, frame);
        send_raw(socket, frame);
        while (receive_raw(socket).kind != 21) {
        }
      });
  EXPECT_EQ(outcomes[0].code, Exit::failed);
  EXPECT_NE(outcomes[0].message.find("it has come already"), std::string::npos)
      << outcomes[0].message;
}

}  // namespace
}  // namespace duplex::net
