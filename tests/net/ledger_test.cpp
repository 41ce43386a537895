// The ledger's arithmetic on records made by hand, and the ledgers of several ranks, which must
// agree.
#include "net/ledger/ledger.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <tuple>

#include "tests/net/cluster.h"
#include "tests/temporary_folder.h"

namespace duplex::net {
namespace {

FrameRecord record(FrameKind kind, bool sent, std::uint64_t step, std::int64_t first,
                   std::int64_t last, std::uint64_t bytes = 100) {
  FrameRecord r;
  r.kind = kind;
  r.sent = sent;
  r.step = step;
  r.bytes = bytes;
  r.queued = r.first = first;
  r.last = last;
  return r;
}

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

TEST(Traffic, ByStep) {
  const std::vector<FrameRecord> records{
      record(FrameKind::hello, true, 0, 0, 1000),      // It is no part of a step.
      record(FrameKind::weights, false, 0, 0, 1000),   // The first weights are not either.
      record(FrameKind::gradient, true, 0, 100, 200),  // Computing hides it.
      record(FrameKind::gradient, true, 0, 200, 300),  // The worker waits during half of it.
      record(FrameKind::weights, false, 1, 250, 400),  // It belongs to the round of step 0.
      record(FrameKind::gradient, true, 1, 1000, 1010, 7),
  };
  const auto steps = traffic_by_step(records, {{250, 400}, {900, 1000}});
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_EQ(steps[0].step, 0U);
  EXPECT_EQ(steps[0].sent, 200U);
  EXPECT_EQ(steps[0].received, 100U);
  EXPECT_EQ(steps[0].sending_ns, 200);
  EXPECT_EQ(steps[0].receiving_ns, 150);
  EXPECT_EQ(steps[0].wire_ns, 300);
  EXPECT_EQ(steps[0].exposed_ns, 150);
  EXPECT_EQ(steps[1].sent, 7U);
  EXPECT_EQ(steps[1].exposed_ns, 0);
}

TEST(Traffic, Summary) {
  Ledger ledger(0, {}, "");
  Ledger::Lane& lane = ledger.lane();
  // Step 0 is left out of the medians. In the others 400 bytes come in 200 ns and 100 go in 100 ns,
  // of a model of 1000: all of it takes 500 ns and 1000 ns.
  for (std::int64_t step = 0; step < 4; ++step) {
    const std::int64_t at = 1000 * step;
    const auto s = static_cast<std::uint64_t>(step);
    lane.add(record(FrameKind::gradient, true, s, at, at + (step == 0 ? 900 : 100)));
    lane.add(record(FrameKind::weights, false, s + 1, at + 100, at + 300, 400));
    ledger.waited({at + 200, at + 350});
  }
  ledger.flush(true);
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
  Ledger ledger(0, {}, "");
  Ledger::Lane& lane = ledger.lane();
  constexpr std::uint64_t steps = 10 * Ledger::window;
  // Other frames have something else in the field for the step, and are not kept.
  lane.add(record(FrameKind::window, true, 100 * steps, 0, 1, 0));
  for (std::uint64_t step = 0; step < steps; ++step) {
    const auto at = static_cast<std::int64_t>(10 * step);
    lane.add(record(FrameKind::gradient, true, step, at, at + 5, 3));
    ledger.waited({at, at + 1});
    ledger.flush();
  }
  ledger.flush(true);
  EXPECT_LE(ledger.records().size(), 4 * Ledger::window);
  for (const FrameRecord& kept : ledger.records()) EXPECT_EQ(kept.kind, FrameKind::gradient);
  EXPECT_GE(ledger.records().size(), Ledger::window);
  EXPECT_EQ(ledger.summary(1).bytes_sent, 3 * steps);
  EXPECT_NEAR(ledger.summary(1).exposed_seconds, 1e-9, 1e-15);
  for (const FrameKind kind : {FrameKind::report, FrameKind::window, FrameKind::pace}) {
    lane.add(record(kind, false, 100 * steps, 1, 2));
    ledger.flush(true);
    EXPECT_GE(ledger.summary(1).steps, Ledger::window - 1);
  }
}

class LedgerFiles : public testing::Test {
 protected:
  std::string path_of(int rank) const {
    return folder / ("ledger-" + std::to_string(rank) + ".csv");
  }
  const TemporaryFolder folder;
};

TEST_F(LedgerFiles, CsvInTheCoordinatorsTime) {
  const std::string path = path_of(3);
  {
    Ledger ledger(3, {1000, 400, 5}, path);
    FrameRecord r = record(FrameKind::gradient, true, 7, 50, 80, 132);
    r.queued = 40;
    r.peer = 2;
    r.parameter = 4;
    r.chunk = 1;
    ledger.lane().add(r);
    ledger.close();
  }
  std::ifstream file(path);
  std::string columns, row, more;
  std::getline(file, columns);
  std::getline(file, row);
  EXPECT_EQ(columns,
            "rank,direction,peer,kind,step,parameter,chunk,bytes,queued_ns,first_ns,last_ns");
  EXPECT_EQ(row, "3,sent,2,gradient,7,4,1,132,640,650,680");
  EXPECT_FALSE(std::getline(file, more));
}

TEST_F(LedgerFiles, NoPlaceToWriteIsAnError) {
  EXPECT_THROW(Ledger(0, {}, folder / "nowhere/ledger.csv"), Error);
  if (::access("/dev/full", W_OK) != 0) GTEST_SKIP() << "no /dev/full here";
  Ledger ledger(0, {}, "/dev/full");
  ledger.lane().add(record(FrameKind::gradient, true, 0, 0, 1));
  EXPECT_THROW(ledger.close(), Error);
}

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

TEST_F(LedgerFiles, BothEndsHaveEveryFrame) {
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
    spec.ledger_path = paths[static_cast<std::size_t>(rank)];
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
