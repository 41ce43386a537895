// The ledger's arithmetic on records made by hand, and the ledgers of several ranks, which must
// agree.
#include "net/ledger/ledger.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>
#include <tuple>

#include "tests/net/cluster.h"
#include "tests/net/ledger/records.h"
#include "tests/temporary_folder.h"

namespace duplex::net {
namespace {

using testing::add_step;
using testing::record;

TEST(Intervals, MergeAndOverlap) {
  const auto a = merged({{5, 9}, {0, 3}, {8, 12}, {3, 4}, {20, 20}});
  ASSERT_EQ(a.size(), 2U);
  EXPECT_EQ(a[0].to, 4);
  EXPECT_EQ(a[1].from, 5);
  EXPECT_EQ(a[1].to, 12);
  EXPECT_EQ(length(a), 11);
  EXPECT_EQ(overlap(a, {{2, 6}, {11, 30}}), 2 + 1 + 1);
  EXPECT_EQ(overlap(a, {}), 0);
  EXPECT_EQ(overlap(a, a), length(a));
}

/// A central server makes lanes for a lost worker that comes back, while a checkpoint asks for the
/// bytes so far.
TEST(LedgerLanes, MayBeMadeWhileTheRunGoesOn) {
  Ledger ledger;
  ledger.lane().add(record(FrameKind::gradient, true, 0, 0, 100));
  std::atomic<bool> over{false};
  std::thread other([&] {
    while (!over) EXPECT_EQ(ledger.bytes().sent, 100U);
  });
  for (int i = 0; i < 20000; ++i) ledger.lane();
  over = true;
  other.join();
}

TEST(Traffic, Summary) {
  Ledger ledger;
  Ledger::Lane& lane = ledger.lane();
  // Step 0 is left out of the medians. In the others 400 bytes come in 200 ns and 100 go in 100 ns,
  // of a model of 1000: all of it takes 500 ns and 1000 ns.
  for (std::int64_t step = 0; step < 4; ++step) {
    const std::int64_t at = 1000 * step;
    const auto s = static_cast<std::uint64_t>(step);
    lane.add(record(FrameKind::gradient, true, s, at, at + (step == 0 ? 900 : 100)));
    lane.add(record(FrameKind::weights, false, s + 1, at + 100, at + 300, 400));
    ledger.waited({at + 200, at + 350}, s + 1);
  }
  ledger.flush();
  const TrafficSummary summary = ledger.summary(1000);
  EXPECT_EQ(summary.bytes_sent, 400U);
  EXPECT_EQ(summary.bytes_received, 1600U);
  EXPECT_EQ(summary.steps, 3U);
  EXPECT_DOUBLE_EQ(summary.step_sent, 100);
  EXPECT_DOUBLE_EQ(summary.step_received, 400);
  EXPECT_NEAR(summary.t_comm, 1000e-9, 1e-15);
  EXPECT_NEAR(summary.wire_seconds, 300e-9, 1e-15);
  EXPECT_NEAR(summary.exposed_seconds, 100e-9, 1e-15);
}

TEST(Ledger, KeepsAWindowAndAllSums) {
  Ledger ledger;
  Ledger::Lane &sent = ledger.lane(), &received = ledger.lane();
  constexpr std::uint64_t steps = 10 * TrafficSums::window;
  // Other frames have something else in the field for the step, which is none.
  sent.add(record(FrameKind::window, true, 100 * steps, 0, 1, 0));
  for (std::uint64_t step = 0; step < steps; ++step) {
    add_step(sent, received, step, 1);
    const auto at = static_cast<std::int64_t>(10000 * step);
    ledger.waited({at, at + 1}, step + 1);
    ledger.flush();
  }
  EXPECT_EQ(ledger.summary(1).bytes_sent, 3 * steps);
  EXPECT_EQ(ledger.summary(1).bytes_received, 5 * steps);
  EXPECT_NEAR(ledger.summary(1).exposed_seconds, 1e-9, 1e-15);
  for (const FrameKind kind : {FrameKind::report, FrameKind::window, FrameKind::pace}) {
    received.add(record(kind, false, 100 * steps, 1, 2));
    ledger.flush();
    EXPECT_GE(ledger.summary(1).steps, TrafficSums::window);
  }
}

/// Neither the length of a run nor the number of its chunks counts.
TEST(Ledger, TakesBoundedMemory) {
  for (const auto& [steps, chunks] : {std::pair{100000U, 16}, std::pair{150U, 20000}}) {
    Ledger ledger;
    Ledger::Lane &sent = ledger.lane(), &received = ledger.lane();
    std::size_t most = 0;
    for (std::uint64_t step = 0; step < steps; ++step) {
      add_step(sent, received, step, chunks);
      const auto at = static_cast<std::int64_t>(10000 * step);
      ledger.waited({at, at + 1}, step + 1);
      ledger.flush();
      most = std::max(most, ledger.held());
    }
    EXPECT_LT(most, 10000000U) << chunks << " chunks";
    EXPECT_EQ(ledger.bytes().sent, 3ULL * steps * static_cast<unsigned>(chunks));
  }
}

/// Nobody flushes while a worker of an asynchronous run tests its network, and others train on.
TEST(Ledger, TakesBoundedMemoryWhereNobodyFlushes) {
  Ledger ledger;
  std::vector<Ledger::Lane*> lanes;
  for (int i = 0; i < 4; ++i) lanes.push_back(&ledger.lane());
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      for (std::uint64_t step = 0; step < 100000; ++step) {
        const auto at = static_cast<std::int64_t>(step);
        lanes[static_cast<std::size_t>(i)]->add(
            record(FrameKind::gradient, false, step / 16, at, at + 1, 3, i));
      }
    });
  std::size_t most = 0;
  for (int i = 0; i < 1000; ++i) {
    most = std::max(most, ledger.held());
    std::this_thread::yield();
  }
  for (std::thread& thread : threads) thread.join();
  most = std::max(most, ledger.held());
  // 400,000 records are 32 MB.
  EXPECT_LT(most, 10000000U);
  ledger.close();
  EXPECT_LT(ledger.held(), 1000000U) << "what many records took is not given back";
  EXPECT_EQ(ledger.bytes().received, 3U * 400000U);
}

TEST(Ledger, TracesTheLastSteps) {
  LedgerSpec spec;
  spec.trace_steps = 3;
  Ledger ledger(spec);
  Ledger::Lane &sent = ledger.lane(), &received = ledger.lane();
  for (std::uint64_t step = 0; step < 50; ++step) {
    add_step(sent, received, step, 4);
    received.add(record(FrameKind::heartbeat, false, 1000, 0, 1));
    ledger.flush();
  }
  const std::vector<TraceEvent> traced = ledger.traced();
  EXPECT_EQ(traced.size(), 4U * 4U * 2U);
  for (const TraceEvent& event : traced) EXPECT_GE(event.round(), 47U);
}

class LedgersOfRanks : public ::testing::Test {
 protected:
  std::string path_of(int rank) const {
    return folder / ("ledger-" + std::to_string(rank) + ".csv");
  }
  const TemporaryFolder folder;
};

struct Row {
  int rank = 0, peer = 0;
  bool sent = false;
  std::string kind;
  std::uint64_t step = 0, parameter = 0, chunk = 0, bytes = 0;
  std::int64_t queued = 0, first = 0, last = 0;
  /// The fields that both ends must agree on.
  auto frame() const {
    return std::make_tuple(sent ? rank : peer, sent ? peer : rank, kind, step, parameter, chunk,
                           bytes);
  }
};

std::vector<Row> read_rows(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  std::vector<Row> rows;
  while (std::getline(file, line)) {
    std::replace(line.begin(), line.end(), ',', ' ');
    std::istringstream fields(line);
    Row row;
    std::string direction;
    fields >> row.rank >> direction >> row.peer >> row.kind >> row.step >> row.parameter >>
        row.chunk >> row.bytes >> row.queued >> row.first >> row.last;
    EXPECT_TRUE(fields) << line;
    row.sent = direction == "sent";
    rows.push_back(row);
  }
  return rows;
}

TEST_F(LedgersOfRanks, BothEndsHaveEveryFrame) {
  // finish() itself checks that the sums equal the kernel's.
  const Topology topology{ServerMode::distributed, 3, 0};
  const std::vector<std::size_t> counts{3000, 100, 40000};
  std::vector<std::string> paths;
  paths.reserve(3);
  for (int rank = 0; rank < topology.size; ++rank) paths.push_back(path_of(rank));
  std::vector<CoordinatorTime> clocks(3);
  const auto outcomes = run_ranks(topology, [&](int rank, const MeshSpec& mesh, Listener listener) {
    Replica replica(counts);
    replica.set_initial();
    ExchangeSpec spec;
    spec.chunk_bytes = 16384;
    const std::string& path = paths[static_cast<std::size_t>(rank)];
    spec.ledger = {path, path + ".traffic"};
    ParameterExchange exchange(spec, replica.spans(), Mesh::join(mesh, std::move(listener)));
    train(exchange, replica, rank, 4);
    exchange.finish([] { return std::string("r"); });
    clocks[static_cast<std::size_t>(rank)] = exchange.ledger().coordinator_time();
    const TrafficSummary traffic = exchange.traffic();
    EXPECT_EQ(traffic.steps, 3U);
    EXPECT_GT(traffic.t_comm, 0);
    EXPECT_GT(traffic.wire_seconds, 0);
    // Both directions of a distributed server carry 2 (N-1)/N of the model a step (4.12), without
    // headers.
    const double model = 4.0 * (3000 + 100 + 40000);
    EXPECT_NEAR(traffic.step_sent + traffic.step_received, 2 * 2 * model * 2 / 3, 0.02 * model);
  });
  for (const Outcome& outcome : outcomes) ASSERT_TRUE(outcome.ok) << outcome.message;

  using Frame = decltype(Row().frame());
  std::vector<Frame> sent, received;
  std::map<Frame, Row> sends;
  std::vector<Row> arrivals;
  for (const std::string& path : paths)
    for (const Row& row : read_rows(path)) {
      (row.sent ? sent : received).push_back(row.frame());
      if (row.sent)
        sends[row.frame()] = row;
      else
        arrivals.push_back(row);
      EXPECT_LE(row.queued, row.first);
      EXPECT_LE(row.first, row.last);
    }
  std::sort(sent.begin(), sent.end());
  std::sort(received.begin(), received.end());
  EXPECT_EQ(sent, received);
  for (const char* kind : {"hello", "pong", "weights", "gradient", "report", "goodbye"})
    EXPECT_TRUE(std::any_of(arrivals.begin(), arrivals.end(), [&](const Row& row) {
      return row.kind == kind;
    })) << kind;

  // In the coordinator's time nothing arrives before it was sent, but for the clocks' stated error.
  // (All ranks share one clock here, so the measured offset must itself be within the error.)
  for (const Row& row : arrivals) {
    const Row& send = sends[row.frame()];
    const auto error = clocks[static_cast<std::size_t>(row.rank)].error_ns +
                       clocks[static_cast<std::size_t>(row.peer)].error_ns;
    EXPECT_GE(row.last + error, send.first) << row.kind;
  }
  for (const CoordinatorTime& clock : clocks) EXPECT_LE(std::abs(clock.offset_ns), clock.error_ns);
}

}  // namespace
}  // namespace duplex::net
