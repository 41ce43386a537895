// Which machines launch gives up, by how the ranks there have ended.
#include "tools/launch/lost_machines.h"

#include <gtest/gtest.h>

namespace duplex::tools {
namespace {

using Hosts = std::vector<std::string>;

const std::vector<net::Address> nodes{{"here", 1}, {"a", 1}, {"b", 1}, {"b", 2}};
const RankEnd trained{3, true}, ended{143, true}, silent{143, false}, no_way{255, false},
    broken{255, true};

class LostMachinesTest : public ::testing::Test {
 protected:
  Hosts note(const std::vector<RankEnd>& ends) { return machines_.note(nodes, ends); }
  LostMachines machines_{[](const std::string& host) { return host == "here"; }};
};

TEST_F(LostMachinesTest, AreLostWhenSshFindsNoWayTwiceInARow) {
  EXPECT_EQ(note({trained, trained, trained, broken}), Hosts()) << "that link had worked";
  EXPECT_EQ(note({ended, ended, no_way, no_way}), Hosts());
  EXPECT_EQ(note({ended, ended, no_way, no_way}), (Hosts{"b"}));
  EXPECT_EQ(note({ended, no_way, no_way, no_way}), (Hosts{"b"})) << "a for the first time";
  EXPECT_EQ(note({ended, no_way, ended, ended}), (Hosts{"a"}));
}

TEST_F(LostMachinesTest, AStartThatSucceedsCountsAnew) {
  EXPECT_EQ(note({ended, no_way, ended, ended}), Hosts());
  EXPECT_EQ(note({trained, ended, ended, ended}), Hosts());
  EXPECT_EQ(note({ended, no_way, ended, ended}), Hosts());
}

/// ssh still waits for an answer when the others have given the rank up.
TEST_F(LostMachinesTest, SilenceCountsWhereOthersSpeak) {
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(note({silent, silent, silent, silent}), Hosts()) << "nobody got far enough";
  EXPECT_EQ(note({ended, silent, ended, silent}), Hosts());
  EXPECT_EQ(note({ended, silent, ended, silent}), (Hosts{"a"})) << "b has one that speaks";
}

/// All are ended soon after the first that found no way: the others may not have come far.
TEST_F(LostMachinesTest, SilenceIsNoLossWhereAnotherIsUnreachable) {
  for (int i = 0; i < 2; ++i) note({ended, silent, no_way, silent});
  EXPECT_EQ(note({ended, silent, no_way, no_way}), (Hosts{"b"}));
  EXPECT_EQ(note({silent, ended, ended, ended}), Hosts()) << "this machine is here";
  EXPECT_EQ(note({silent, ended, ended, ended}), Hosts());
}

TEST_F(LostMachinesTest, TakeAllRanksOfAMachineOut) {
  EXPECT_EQ(numbers_of(nodes, {"b"}), (std::vector<int>{2, 3}));
  EXPECT_EQ(without(nodes, {2, 3}, "it").size(), 2U);
  EXPECT_EQ(without(nodes, {0}, "it").front().host, "a");
  EXPECT_EQ(listed({2, 3}), "2,3");
}

}  // namespace
}  // namespace duplex::tools
