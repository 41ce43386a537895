// The ranks agree on the checkpoint that all of them have.
#include "net/rendezvous/resume.h"

#include <gtest/gtest.h>

#include <thread>

#include "net/rendezvous/link_watch.h"
#include "tests/net/rank_zero.h"
#include "tests/ranks_in_threads.h"

namespace duplex::net {
namespace {

/// Lets ranks with these offers agree. Returns each rank's step, or its error.
std::vector<std::string> agreed(ServerMode server, const std::vector<ResumeOffer>& offers) {
  std::vector<std::string> results(offers.size());
  const Topology topology{server, static_cast<int>(offers.size()), 0};
  run_ranks(topology, [&](int rank, MeshSpec spec, Listener listener) {
    std::string& result = results[static_cast<std::size_t>(rank)];
    Mesh mesh = Mesh::join(std::move(spec), std::move(listener));
    try {
      const auto point =
          agree_to_begin(mesh, offers[static_cast<std::size_t>(rank)], milliseconds(20000));
      result = point ? std::to_string(point->steps) : "begins";
      if (point && point->ranks != offers.size())
        result += " by " + std::to_string(point->ranks) + ", " + std::to_string(point->samples);
      if (point && !point->positions.empty()) result += " at";
      for (std::size_t i = 0; point && i < point->positions.size(); ++i)
        result += " " + std::to_string(point->positions[i]);
    } catch (const Error& error) {
      result = error.what();
    }
    // Every frame is recorded: an offer and its answer on each link to the coordinator.
    for (const Link& link : mesh.links()) {
      std::size_t records = 0;
      for (const FrameRecord& frame : link.handshake)
        records += frame.kind == FrameKind::offer || frame.kind == FrameKind::resume ? 1 : 0;
      EXPECT_EQ(records, rank == 0 || link.rank == 0 ? 2U : 0U);
    }
  });
  return results;
}

/// Checkpoints of so many steps by three ranks.
ResumeOffer offer(const std::vector<std::uint64_t>& steps, bool complete = true) {
  ResumeOffer offer{{}, complete, false, false};
  for (const std::uint64_t each : steps) offer.points.push_back({each, 10 * each, 3});
  return offer;
}

const ResumeOffer any{{}, false, true, false}, never{{}, false, false, true};

std::vector<std::string> three(const std::string& result) {
  return {result, result, result};
}

/// A peer that has said what is waited for and then ended the connection is lost only when that has
/// been read.
TEST(LinkWatch, WhatCameBeforeTheEndCounts) {
  const auto outcomes =
      run_ranks({ServerMode::distributed, 2, 0}, [](int rank, MeshSpec spec, Listener listener) {
        Mesh mesh = Mesh::join(std::move(spec), std::move(listener));
        FrameStream& stream = mesh.links().front().stream;
        const Deadline deadline = Clock::now() + std::chrono::seconds(20);
        if (rank == 0) {
          FrameHeader header;
          header.kind = FrameKind::resume;
          stream.write(header, nullptr, deadline, "testing");
          return;
        }
        while (!stream.socket().ended() && Clock::now() < deadline)
          std::this_thread::sleep_for(milliseconds(1));
        check_links(mesh.links(), 0.0);
        EXPECT_TRUE(has_next(mesh.links().front(), FrameKind::resume));
        stream.read_header(deadline, "testing");
        EXPECT_THROW(check_links(mesh.links(), 0.0), NetworkError);
      });
  for (const Outcome& outcome : outcomes) EXPECT_TRUE(outcome.ok) << outcome.message;
}

TEST(Resume, TheNewestThatAllHave) {
  for (const ServerMode server : {ServerMode::distributed, ServerMode::central}) {
    EXPECT_EQ(agreed(server, {offer({8, 4}), offer({8, 4}), offer({8, 4})}), three("8"));
    EXPECT_EQ(agreed(server, {offer({12, 8, 4}), offer({8, 4}), offer({12, 8})}), three("8"));
    EXPECT_EQ(agreed(server, {offer({9, 4}), offer({10, 9, 4}, false), any}), three("9"));
  }
}

TEST(Resume, ACheckpointByAnotherNumberOfRanksIsAnother) {
  ResumeOffer more = offer({4});
  more.points.insert(more.points.begin(), {8, 160, 4});
  EXPECT_EQ(agreed(ServerMode::distributed, {more, more, more}), three("8 by 4, 160"));
  EXPECT_EQ(agreed(ServerMode::distributed, {more, offer({8, 4}), more}), three("4"));
  EXPECT_EQ(agreed(ServerMode::central, {more, any, more}), three("8 by 4, 160"));
}

TEST(Resume, WithoutAnyTheTrainingBegins) {
  EXPECT_EQ(agreed(ServerMode::distributed, {offer({}, false), offer({}, false), any}),
            three("begins"));
  // A rank was killed before the first checkpoint; the others kept their parts of the last steps.
  EXPECT_EQ(
      agreed(ServerMode::distributed, {offer({6}, false), offer({7, 6}, false), offer({}, false)}),
      three("begins"));
  // A rank was killed while it wrote the first checkpoint, which the others have.
  EXPECT_EQ(agreed(ServerMode::distributed, {offer({6, 4}), never, offer({7, 6, 4})}),
            three("begins"));
}

TEST(Resume, AllRanksAreToldToOrNone) {
  ResumeOffer told = offer({8});
  told.resumes = true;
  EXPECT_EQ(agreed(ServerMode::distributed, {offer({8}), told, offer({8})}),
            three("rank 1 has --resume, and rank 0 has not: give all ranks the same"));
}

/// The coordinator tells one rank after the other, and who has been told ends at once.
TEST(Resume, ARankWhoseLinkEndsIsToldWhy) {
  std::vector<std::string> results(3);
  run_ranks({ServerMode::distributed, 3, 0}, [&](int rank, MeshSpec spec, Listener listener) {
    Mesh mesh = Mesh::join(std::move(spec), std::move(listener));
    const Deadline deadline = Clock::now() + std::chrono::seconds(20);
    if (rank != 0) {
      try {
        agree_to_begin(mesh, offer({8}), milliseconds(20000));
      } catch (const Error& error) {
        results[static_cast<std::size_t>(rank)] = error.what();
      }
      return;
    }
    answer_late(mesh.links()[0], {}, "no", deadline);
    while (!mesh.links()[0].stream.socket().ended() && Clock::now() < deadline)
      std::this_thread::sleep_for(milliseconds(1));
    std::this_thread::sleep_for(milliseconds(100));
    answer_late(mesh.links()[1], {}, "no", deadline);
  });
  EXPECT_EQ(results, (std::vector<std::string>{"", "no", "no"}));
}

TEST(Resume, NoneThatAllHaveIsAnErrorOnEveryRank) {
  EXPECT_EQ(agreed(ServerMode::central, {offer({8, 4}), any, offer({}, false)}),
            three("--resume: no checkpoint is there on all ranks; steps there are on rank 0: 8, 4; "
                  "on rank 1: any; on rank 2: none"));
}

/// An asynchronous checkpoint of run 7: its number, and by worker what an owner knows of it.
ResumePoint numbered(std::uint64_t number, std::vector<std::uint64_t> positions = {}) {
  ResumePoint point{number, 7, 3};
  point.positions = std::move(positions);
  return point;
}

ResumeOffer offer_of(const std::vector<ResumePoint>& points) {
  return {points, !points.empty(), false, false};
}

TEST(Resume, AWorkersPositionIsTheLeastThatAnyOwnerTells) {
  EXPECT_EQ(agreed(ServerMode::distributed,
                   {offer_of({numbered(4, {12, 9, 7})}), offer_of({numbered(4, {11, 9, 8})}),
                    offer_of({numbered(4, {})})}),
            three("4 at 11 9 7"));
  EXPECT_EQ(
      agreed(ServerMode::central, {offer_of({numbered(5, {8, 9}), numbered(4, {6, 5})}),
                                   offer_of({numbered(5), numbered(4)}), offer_of({numbered(4)})}),
      three("4 at 6 5"));
}

TEST(Resume, ACheckpointOfAnotherRunIsAnother) {
  ResumePoint other = numbered(4);
  other.samples = 8;
  EXPECT_EQ(agreed(ServerMode::central,
                   {offer_of({numbered(4, {6, 5}), numbered(3, {3, 3})}),
                    offer_of({other, numbered(3)}), offer_of({numbered(4), numbered(3)})}),
            three("3 at 3 3"));
}

/// Rank 2 was lost when the server wrote the fifth.
TEST(Resume, ARankThatWasLostNeedNotHaveIt) {
  ResumePoint fifth = numbered(5, {8, 4});
  fifth.absent = {2};
  EXPECT_EQ(agreed(ServerMode::central,
                   {offer_of({fifth}), offer_of({numbered(5)}), offer_of({numbered(2)})}),
            three("5 at 8 4"));
}

/// Each worker kept the last weights under a number of its own.
TEST(Resume, WhatWorkersKeptHasTheServersNumber) {
  const auto kept = [](ResumePoint point) {
    point.kept = true;
    return point;
  };
  const ResumeOffer server = offer_of({numbered(3, {2, 2}), kept(numbered(5, {9, 8}))});
  const ResumeOffer workers = offer_of({kept(numbered(4)), numbered(3)});
  EXPECT_EQ(agreed(ServerMode::central, {server, workers, workers}), three("5 at 9 8"));
  // A server that has begun and knows of no checkpoint must not begin anew.
  EXPECT_EQ(agreed(ServerMode::central, {never, offer_of({kept(numbered(1))}), never}),
            three("--resume: no checkpoint is there on all ranks; steps there are on rank 0: none; "
                  "on rank 1: 1 (kept without the server); on rank 2: none"));
  EXPECT_EQ(agreed(ServerMode::central, {never, offer_of({numbered(1)}), never}), three("begins"));
  // Nothing is lost where the worker had got the first weights, and no more.
  const ResumePoint untrained = kept(numbered(1, {0, ResumePoint::no_position}));
  EXPECT_EQ(agreed(ServerMode::central, {never, offer_of({untrained}), never}), three("begins"));
}

/// A rank that is connected to all its peers ends the run, or is lost, while another still waits
/// for one.
TEST(Resume, WhatEndsTheRunBehindAnOfferIsSeenAtOnce) {
  for (const bool says_why : {true, false}) {
    RankZero zero(3);
    Socket socket = zero.connect();
    RawSelf self;
    self.rank = 2;
    self.size = 3;
    EXPECT_EQ(raw_handshake(socket, self), "");
    RawFrame frame;
    frame.kind = static_cast<std::uint16_t>(FrameKind::offer);
    frame.payload = {1, 0, 0, 0, 0};
    send_raw(socket, frame);
    if (says_why) {
      frame.kind = static_cast<std::uint16_t>(FrameKind::abort);
      frame.payload = encode(AbortReason{"no disk", Exit::failed});
      send_raw(socket, frame);
    } else {
      socket = Socket();
    }
    const auto begin = Clock::now();
    zero.wait();
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(8));
    EXPECT_EQ(zero.outcome.code, says_why ? Exit::failed : Exit::peer_lost);
    expect_in(zero.outcome.message, {"rank 2 (127.0.0.1:", says_why ? "no disk" : "closed"});
  }
}

/// A rank that claims to have a million checkpoints costs no memory.
TEST(Resume, AnOfferThatCannotBeIsRefused) {
  RankZero zero;
  Socket socket = zero.connect();
  EXPECT_EQ(raw_handshake(socket, {}), "");
  zero.wait();
  ASSERT_TRUE(zero.outcome.ok) << zero.outcome.message;
  RawFrame frame;
  frame.kind = static_cast<std::uint16_t>(FrameKind::offer);
  frame.payload = {0, 0x40, 0x42, 0x0F, 0};
  frame.length = frame.payload.size();
  send_raw(socket, frame);
  try {
    agree_to_begin(zero.mesh, offer({4}), milliseconds(20000));
    ADD_FAILURE() << "the offer was taken";
  } catch (const ProtocolError& error) {
    expect_in(error.what(), {"an offer of 1000000 checkpoints"});
  }
}

}  // namespace
}  // namespace duplex::net
