// How a run that goes on takes lost ranks back, and nobody else.
#include <gtest/gtest.h>

#include <atomic>

#include "net/rendezvous/resume.h"
#include "tests/net/rank_zero.h"
#include "tests/ranks_in_threads.h"

namespace duplex::net {
namespace {

using std::chrono::milliseconds;

/// Rank 0 of three, and its door. Rank 2 is lost as soon as `lost` says so.
TEST(Door, TakesBackWhoIsLostAndNobodyElse) {
  const Topology topology{ServerMode::central, 3, 0};
  std::atomic<bool> lost{false}, over{false};
  std::atomic<int> came{-1};
  std::vector<std::string> log;
  const auto outcomes = run_ranks(topology, [&](int rank, const MeshSpec& mesh, Listener listener) {
    MeshSpec own = mesh;
    own.identity.settings = fingerprint("settings");
    if (rank == 0) {
      own.takes_back = true;
      own.log = [&](const std::string& line) { log.push_back(line); };
      Mesh joined = Mesh::join(own, std::move(listener));
      agree_to_begin(joined, {{}, false, true}, own.timeout);
      const auto door = joined.take_door();
      ASSERT_TRUE(door);
      while (auto link = door->next([&](int peer) { return peer == 2 && lost && came < 0; },
                                    [&] { return over.load(); })) {
        ResumePoint point;
        point.late = true;
        point.positions = {0, 7};
        point.ends = {ResumePoint::no_end, 9};
        came = link->rank;
        answer_late(*link, point, "", Clock::now() + own.timeout);
      }
      return;
    }
    Mesh joined = Mesh::join(own);
    EXPECT_FALSE(agree_to_begin(joined, {{}, false, true}, own.timeout));
    if (rank == 1) return;
    MeshSpec stranger = own;
    stranger.timeout = milliseconds(700);
    stranger.identity.settings = fingerprint("other settings");
    EXPECT_THROW(Mesh::join(stranger), Error) << "it does not fit, whoever is lost";
    stranger = own;
    stranger.timeout = milliseconds(700);
    stranger.key = Key(sha256("another key"));
    EXPECT_THROW(Mesh::join(stranger), Error);
    stranger = own;
    stranger.timeout = milliseconds(700);
    EXPECT_THROW(Mesh::join(stranger), Error) << "it is not lost";
    EXPECT_EQ(came, -1);
    lost = true;
    Mesh back = Mesh::join(own);
    const auto point = agree_to_begin(back, {{}, false, true}, own.timeout);
    over = true;
    ASSERT_TRUE(point);
    EXPECT_TRUE(point->late);
    EXPECT_EQ(point->positions[1], 7U);
    EXPECT_EQ(point->ends, (std::vector<std::uint64_t>{ResumePoint::no_end, 9}));
    EXPECT_EQ(back.coordinator_time().epoch_ns, joined.coordinator_time().epoch_ns);
  });
  for (const Outcome& outcome : outcomes) EXPECT_TRUE(outcome.ok) << outcome.message;
  EXPECT_EQ(came, 2);
  int turned_away = 0;
  for (const std::string& line : log) turned_away += line.rfind("turned away: ", 0) == 0 ? 1 : 0;
  EXPECT_GE(turned_away, 2);
}

/// A peer that has the key can claim any number: the run is not asked about ranks that there are
/// not.
TEST(Door, AsksOnlyAboutRanksThatThereAre) {
  const Topology topology{ServerMode::central, 2, 0};
  std::atomic<bool> over{false};
  std::vector<int> asked;
  const auto outcomes = run_ranks(topology, [&](int rank, const MeshSpec& mesh, Listener listener) {
    MeshSpec own = mesh;
    own.takes_back = rank == 0;
    Mesh joined = Mesh::join(own, std::move(listener));
    agree_to_begin(joined, {{}, false, true}, own.timeout);
    if (rank == 0) {
      const auto door = joined.take_door();
      ASSERT_TRUE(door);
      EXPECT_FALSE(door->next(
          [&](int peer) {
            asked.push_back(peer);
            return true;
          },
          [&] { return over.load(); }));
      return;
    }
    for (const int claimed : {2, 1000000, -1, 0}) {
      Self self = self_of(own);
      self.rank = claimed;
      const Deadline deadline = Clock::now() + own.timeout;
      FrameStream stream(Socket::connect(own.addresses[0], "", deadline));
      EXPECT_THROW(client_handshake(stream, self, 0, deadline), Mismatch) << claimed;
    }
    over = true;
  });
  for (const Outcome& outcome : outcomes) EXPECT_TRUE(outcome.ok) << outcome.message;
  EXPECT_EQ(asked, std::vector<int>());
}

TEST(Door, IsNoneUnlessItIsAskedFor) {
  run_ranks({ServerMode::central, 2, 0}, [&](int, const MeshSpec& mesh, Listener listener) {
    EXPECT_FALSE(Mesh::join(mesh, std::move(listener)).take_door());
  });
}

}  // namespace
}  // namespace duplex::net
