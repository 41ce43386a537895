// Ranks go on from a checkpoint of which each has some files.
#include "net/rendezvous/file_sharing.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "tests/net/rank_zero.h"
#include "tests/ranks_in_threads.h"
#include "tests/temporary_folder.h"

namespace duplex::net {
namespace {

const ResumePoint eight{8, 80, 3};

HeldFiles own(int rank, const ResumePoint& point = eight) {
  return {point, rank, rank, false, false};
}
HeldFiles copy(int rank, bool partial = false) {
  return {eight, rank, rank, true, partial};
}

/// Every rank needs the part of its number.
const Needs own_parts = [](const ResumePoint&, int rank, const HeldParts&) {
  return std::vector<PartNeed>{{rank, false}};
};
/// Every rank needs all three parts.
const Needs all_parts = [](const ResumePoint&, int, const HeldParts&) {
  return std::vector<PartNeed>{{0, false}, {1, false}, {2, false}};
};

std::string text_of(const SharingPlan& plan) {
  std::string text;
  for (const int part : plan.missing) text += "no " + std::to_string(part) + "; ";
  for (const FileTransfer& each : plan.transfers)
    text += std::to_string(each.rank) + (each.copy ? " (copy)" : "") + " from " +
            std::to_string(each.from) + " to " + std::to_string(each.to) + "; ";
  return text;
}

TEST(SharingPlan, ARankGetsWhatItLacks) {
  const Topology topology{ServerMode::distributed, 3, 0};
  const auto plan = [&](const std::vector<RankHolding>& ranks, const Needs& needs) {
    return text_of(plan_sharing(topology, eight, ranks, needs));
  };
  EXPECT_EQ(plan({{false, {own(0)}}, {false, {own(1)}}, {false, {own(2)}}}, own_parts), "");
  EXPECT_EQ(plan({{false, {own(0)}}, {false, {}}, {false, {own(2), copy(1)}}}, own_parts),
            "1 (copy) from 2 to 1; ");
  EXPECT_EQ(plan({{true, {}}, {false, {}}, {false, {own(2), copy(1)}}}, own_parts),
            "1 (copy) from 2 to 1; ")
      << "rank 0 needs nothing";
  EXPECT_EQ(plan({{false, {}}, {false, {}}, {false, {own(2)}}}, own_parts), "no 0; no 1; ");
  EXPECT_EQ(plan({{false, {own(0, {8, 80, 4})}}, {false, {own(1)}}, {false, {own(2)}}}, own_parts),
            "no 0; ")
      << "it is of another checkpoint";
  // Each begins with another peer, and one that sends less is asked before one that sends more.
  EXPECT_EQ(
      plan({{false, {own(0), copy(2)}}, {false, {own(1), copy(0)}}, {false, {own(2)}}}, all_parts),
      "2 (copy) from 0 to 1; 1 from 1 to 2; 1 from 1 to 0; 0 from 0 to 2; ");
}

TEST(SharingPlan, APartialCopyDoesWhereThatIsEnough) {
  const Topology topology{ServerMode::distributed, 2, 0};
  for (const bool whole : {false, true}) {
    const SharingPlan plan =
        plan_sharing(topology, eight, {{true, {own(0), copy(1, true)}}, {false, {}}},
                     [&](const ResumePoint&, int, const HeldParts& parts) {
                       EXPECT_TRUE(parts.held(1, false));
                       EXPECT_FALSE(parts.held(1, true));
                       return std::vector<PartNeed>{{1, whole}};
                     });
    EXPECT_EQ(text_of(plan), whole ? "no 1; " : "1 (copy) from 0 to 1; ");
  }
}

/// Workers of a central server reach each other through it.
TEST(SharingPlan, ACentralServerPassesOn) {
  const Topology topology{ServerMode::central, 3, 0};
  const SharingPlan plan =
      plan_sharing(topology, eight, {{false, {own(0)}}, {false, {own(1)}}, {false, {}}},
                   [](const ResumePoint&, int rank, const HeldParts&) {
                     return std::vector<PartNeed>{{rank == 0 ? 0 : 1, true}};
                   });
  EXPECT_EQ(text_of(plan), "1 from 1 to 0; 1 from 0 to 2; ");
}

/// A rank that had no part of the checkpoint is not asked for one, as soon as anybody knows that.
TEST(SharingPlan, PartsThatNeverWereAreNotMissed) {
  const Topology topology{ServerMode::distributed, 3, 0};
  HeldFiles none = own(1);
  none.none = true;
  HeldFiles cut = own(0);
  cut.cut = true;
  std::vector<RankHolding> ranks{{false, {}}, {false, {cut, own(2)}}, {false, {}}};
  const Needs needs = [](const ResumePoint& point, int rank, const HeldParts& parts) {
    EXPECT_TRUE(parts.cut);
    EXPECT_FALSE(parts.held(1, false));
    return all_parts(point, rank, parts);
  };
  EXPECT_EQ(text_of(plan_sharing(topology, eight, ranks, needs)), "no 1; ");
  ranks[1].held.push_back(none);
  EXPECT_EQ(text_of(plan_sharing(topology, eight, ranks, needs)),
            "0 from 1 to 2; 2 from 1 to 2; 0 from 1 to 0; 2 from 1 to 0; ");
}

TEST(HeldFiles, CannotBeMoreThanThereAre) {
  const std::vector<HeldFiles> some{
      own(2), copy(1, true), {eight, 3, 70, true, false}, {eight, 5, 6, false, false, true, true}};
  const std::vector<HeldFiles> read = decode_held(encode_held(some));
  ASSERT_EQ(read.size(), some.size());
  for (std::size_t i = 0; i < some.size(); ++i) {
    EXPECT_TRUE(read[i].has(eight, some[i].last));
    EXPECT_FALSE(read[i].has(eight, some[i].last + 1));
    EXPECT_EQ(read[i].copies, some[i].copies);
    EXPECT_EQ(read[i].partial, some[i].partial);
    EXPECT_EQ(read[i].cut, some[i].cut);
    EXPECT_EQ(read[i].none, some[i].none);
  }
  const std::vector<HeldFiles> many(1000, own(1));
  EXPECT_EQ(decode_held(encode_held(many)).size(), most_held);
  EXPECT_LE(encode_held(many).size(), most_held_bytes);
  for (const auto& [first, last] : {std::pair{-1, 0}, {2, 1}, {0, most_ranks}})
    EXPECT_THROW(decode_held(encode_held({{eight, first, last, false, false}})), ProtocolError);
  EXPECT_THROW(decode_held({0, 0, 1, 0}), ProtocolError) << "65536 lots";
}

/// Ranks with a folder each, whose files are "N.own" and "N.copy".
class FileSharingTest : public ::testing::Test {
 protected:
  std::string path(int owner, int rank, bool copy) const {
    return folder_ /
           (std::to_string(owner) + "-" + std::to_string(rank) + (copy ? ".copy" : ".own"));
  }
  static std::string content(int rank, std::size_t bytes) {
    std::string text(bytes, '\0');
    for (std::size_t i = 0; i < bytes; ++i)
      text[i] = static_cast<char>(static_cast<std::size_t>(rank) * 31 + i * 7 + i / 256);
    return text;
  }
  void write(int owner, const HeldFiles& file, std::size_t bytes) const {
    std::ofstream(path(owner, file.first, file.copies), std::ios::binary)
        << content(file.first, bytes);
  }
  static std::string read(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
  }
  /// Lets ranks that hold this agree. Returns each rank's step, or its error.
  std::vector<std::string> agreed(const Topology& topology,
                                  const std::vector<std::vector<HeldFiles>>& held,
                                  std::size_t bytes, const Needs& needs,
                                  const std::function<void(int, int)>& received = {}) {
    for (std::size_t rank = 0; rank < held.size(); ++rank)
      for (const HeldFiles& file : held[rank]) write(static_cast<int>(rank), file, bytes);
    std::vector<std::string> results(held.size());
    sent_.assign(held.size(), 0);
    run_ranks(topology, [&](int rank, MeshSpec spec, Listener listener) {
      const auto index = static_cast<std::size_t>(rank);
      Mesh mesh = Mesh::join(std::move(spec), std::move(listener));
      FileSharing sharing;
      sharing.held = held[index];
      sharing.needs = needs;
      sharing.path = [&](const ResumePoint& point, int part, bool copy) {
        EXPECT_EQ(point.steps, 8U);
        return path(rank, part, copy);
      };
      sharing.received = [&](const ResumePoint&, int part) {
        if (received) received(rank, part);
      };
      try {
        const auto point =
            agree_to_begin(mesh, {{}, true, false, false}, milliseconds(20000), &sharing);
        results[index] = point ? std::to_string(point->steps) : "begins";
      } catch (const Error& error) {
        results[index] = error.what();
      }
      for (const Link& link : mesh.links())
        for (const FrameRecord& frame : link.handshake)
          if (frame.kind == FrameKind::file && frame.sent) sent_[index] += frame.bytes;
    });
    return results;
  }

  TemporaryFolder folder_;
  std::vector<std::uint64_t> sent_;  ///< By rank: bytes of files with their headers.
};

TEST_F(FileSharingTest, FilesComeAsTheyAre) {
  for (const std::size_t bytes : {std::size_t{1}, file_part, 2 * file_part + 5}) {
    const Topology topology{ServerMode::distributed, 3, 0};
    EXPECT_EQ(agreed(topology, {{own(0), copy(2)}, {own(1)}, {}}, bytes, all_parts),
              std::vector<std::string>(3, "8"));
    for (const int rank : {0, 1, 2})
      for (const int part : {0, 1, 2}) {
        const bool has_copy = rank == 0 && part == 2;
        EXPECT_EQ(read(path(rank, part, has_copy)), content(part, bytes)) << rank << " " << part;
        std::filesystem::remove(path(rank, part, false));
      }
    const std::size_t frames = (bytes + file_part - 1) / file_part;
    EXPECT_EQ(sent_[0] + sent_[1], 6 * (bytes + frames * header_bytes));
    EXPECT_EQ(sent_[2], 0U);
  }
}

TEST_F(FileSharingTest, AServerPassesFilesOn) {
  const Topology topology{ServerMode::central, 4, 0};
  const Needs needs = [](const ResumePoint&, int rank, const HeldParts&) {
    return std::vector<PartNeed>{{rank == 0 ? 0 : 3, false}};
  };
  EXPECT_EQ(agreed(topology, {{}, {copy(0)}, {}, {own(3)}}, 3000, needs),
            std::vector<std::string>(4, "8"));
  EXPECT_EQ(read(path(0, 0, false)), content(0, 3000));
  for (const int rank : {0, 1, 2}) EXPECT_EQ(read(path(rank, 3, false)), content(3, 3000)) << rank;
}

/// A file that has come damaged ends the run of all.
TEST_F(FileSharingTest, WhatOneRankCannotUseEndsAll) {
  const Topology topology{ServerMode::distributed, 3, 0};
  const auto results =
      agreed(topology, {{own(0)}, {own(1), copy(2)}, {}}, 5000, own_parts, [](int rank, int part) {
        throw Error("rank " + std::to_string(rank) + " finds part " + std::to_string(part) +
                    " damaged");
      });
  for (const std::string& result : results)
    EXPECT_NE(result.find("rank 2 finds part 2 damaged"), std::string::npos) << result;
}

TEST_F(FileSharingTest, AllHearWhichPartIsLost) {
  const Topology topology{ServerMode::distributed, 3, 0};
  const auto results = agreed(topology, {{own(0)}, {own(1), copy(0)}, {}}, 50, own_parts);
  for (const std::string& result : results)
    EXPECT_EQ(
        result,
        "--resume: no checkpoint is there on all ranks; steps there are on rank 0: 8; on rank "
        "1: 8; on rank 2: none; of the one after 8 steps by 3 ranks, no rank has the part of "
        "rank 2, nor a copy of it");
}

/// A rank that stands still is given up, one whose peer sends a long file is not.
TEST_F(FileSharingTest, AWaitIsAsLongAsTheSenderLives) {
  const Topology topology{ServerMode::distributed, 3, 0};
  const std::vector<FileTransfer> transfers{{0, 1, 5, false}, {0, 2, 6, false}};
  for (const int part : {5, 6}) write(0, own(part), 4000);
  constexpr milliseconds timeout{1200};
  for (const bool lives : {true, false}) {
    std::atomic<int> at_work{topology.size};
    const auto outcomes = run_ranks(topology, [&](int rank, MeshSpec spec, Listener listener) {
      Mesh mesh = Mesh::join(std::move(spec), std::move(listener));
      FileSharing sharing;
      sharing.path = [&](const ResumePoint&, int part, bool copy) {
        return path(rank, part, copy);
      };
      sharing.received = [](const ResumePoint&, int) {};
      if (rank == 1) {
        // Hears what the sender says, and takes four times the timeout; or says nothing.
        Link& link = mesh.links().front();
        FrameHeader header;
        header.kind = FrameKind::heartbeat;
        const Deadline end = Clock::now() + 4 * timeout;
        while (Clock::now() < end) {
          if (lives)
            for (Link& each : mesh.links()) each.stream.write(header, nullptr, soon(), "testing");
          std::this_thread::sleep_for(timeout / 4);
        }
        if (!lives) return;
        EXPECT_EQ(link.rank, 0);
      }
      share_files(mesh, sharing, eight, own_transfers(transfers, rank), timeout);
      // A run goes on with the mesh, whose end another rank would take for a loss.
      --at_work;
      for (const auto end = soon(); at_work > 0 && Clock::now() < end;)
        std::this_thread::sleep_for(milliseconds(5));
    });
    EXPECT_EQ(outcomes[0].ok, lives) << outcomes[0].message;
    EXPECT_EQ(outcomes[2].ok, lives) << outcomes[2].message;
    if (lives) {
      EXPECT_EQ(read(path(2, 6, false)), content(6, 4000));
    } else {
      EXPECT_EQ(outcomes[0].code, Exit::timed_out) << outcomes[0].message;
    }
    std::filesystem::remove(path(2, 6, false));
  }
}

}  // namespace
}  // namespace duplex::net
