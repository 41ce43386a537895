// The records of chunks in a checkpoint of an asynchronous run.
#include "tools/dist/chunk_records.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace duplex::tools {
namespace {

using net::AppliedSteps;
using net::ChunkRecord;

TEST(ChunkRecords, AreReadAgain) {
  const std::vector<ChunkRecord> records{{},
                                         {25, {AppliedSteps(12), AppliedSteps(13)}},
                                         {25, {AppliedSteps(12), AppliedSteps(13)}},
                                         {},
                                         {26, {AppliedSteps(13), AppliedSteps::parse("11+13+14")}}};
  const std::string text = text_of(records);
  EXPECT_EQ(text, "1-2:25:12,13;4-4:26:13,11+13+14");
  EXPECT_EQ(text_of(parse_records(text, 5, 2)), text);
  EXPECT_EQ(positions_of(records), (std::vector<std::uint64_t>{12, 11}));
  EXPECT_TRUE(positions_of(parse_records("", 5, 2)).empty());
}

TEST(ChunkRecords, DamageIsAnError) {
  for (const char* text : {"1-5:25:12,13", "2-1:25:12,13", "1-2:25:12", "1-2:25:12,13,14", "1-2:25",
                           "1:25:12,13", "1-2:x:12,13", "1-2:25:12,x", ";", "1-2:25:12,13;;"})
    EXPECT_THROW(parse_records(text, 5, 2), Error) << text;
}

TEST(ChunkRecords, StalenessOfWhatIsInNoChunkIsLeftOut) {
  const std::vector<net::Staleness> steps{{0, 0, 5, 1, 1}, {1, 0, 5, 2, 1}, {0, 1, 4, 0, 0}};
  const std::string text = text_of(steps);
  EXPECT_EQ(text, "0: 5/1/1 5/2/1;1: 4/0/0");
  const auto kept = parse_staleness(
      text, {{2, {AppliedSteps(1), AppliedSteps(1)}}, {1, {AppliedSteps(1), AppliedSteps(0)}}});
  EXPECT_EQ(text_of(kept), "0: 5/1/1;1: 4/0/0");
  EXPECT_TRUE(parse_staleness("", {}).empty());
  const std::vector<net::Staleness> wide{{0, 0, 5, 1, 1, 4}, {4, 0, 5, 2, 1, 4}};
  EXPECT_EQ(text_of(wide), "0*4: 5/1/1 5/2/1");
  EXPECT_EQ(text_of(parse_staleness(text_of(wide), {{2, {AppliedSteps(9)}}})), text_of(wide));
  EXPECT_EQ(text_of(parse_staleness(text_of(wide), {{2, {AppliedSteps(4)}}})), "0*4: 5/1/1");
  for (const char* damaged : {"0:", "x", "0: 5/1", "0: 5/1/1;;1", "99: 1/1/1", "0*0: 1/1/1",
                              "0*9999999999999999: 1/1/1 1/1/1", "0*: 1/1/1"})
    EXPECT_LE(parse_staleness(damaged, {{2, {AppliedSteps(1)}}}).size(), 2U) << damaged;
}

}  // namespace
}  // namespace duplex::tools
