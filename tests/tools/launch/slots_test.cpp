// Tests which ranks the slots of a nodefile belong to.
#include <gtest/gtest.h>

#include <map>

#include "core/error.h"
#include "tests/temporary_folder.h"
#include "tests/tools/program.h"
#include "tools/launch/rank_source.h"

namespace duplex::tools {
namespace {

using Variables = std::map<std::string, std::string>;

RankSource find(const Variables& variables, const RankFlags& flags) {
  return find_rank(flags, [&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

std::string addresses(const RankSource& source) {
  std::string text;
  for (const net::Address& address : source.addresses)
    text += (text.empty() ? "" : " ") + address.str();
  return text;
}

Variables under_mpirun(const std::string& rank, const std::string& size,
                       const std::string& local_size) {
  return {{"OMPI_COMM_WORLD_RANK", rank},
          {"OMPI_COMM_WORLD_SIZE", size},
          {"OMPI_COMM_WORLD_LOCAL_SIZE", local_size}};
}

TEST(Slots, SlotsAreOneRanksUnlessALauncherStartsEach) {
  const TemporaryFolder folder;
  const std::string hosts = folder / "hosts";
  testing::write_text(hosts, "a slots=2\nb\na\n");
  const auto taking_slots = [&](int index, bool with_server) {
    return RankFlags{hosts, index, with_server, {}, true};
  };
  RankSource source = find({}, taking_slots(2, false));
  EXPECT_EQ(addresses(source), "a:7117 b:7117 a:7119");
  EXPECT_EQ(source.slots, (std::vector<int>{2, 1, 1}));
  EXPECT_EQ(source.computing_here, 3);
  EXPECT_EQ(source.computing_before, 2);
  source = find({}, taking_slots(1, true));  // The server is a rank of its own.
  EXPECT_EQ(addresses(source), "a:7117 a:7118 b:7117 a:7119");
  EXPECT_EQ(source.slots, (std::vector<int>{1, 1, 1, 1}));
  source = find(under_mpirun("3", "4", "2"), taking_slots(-1, false));
  EXPECT_EQ(addresses(source), "a:7117 a:7118 b:7117 a:7119");
  EXPECT_EQ(source.computing_before, 2);
  source = find(under_mpirun("0", "3", "1"), taking_slots(-1, false));
  EXPECT_EQ(source.slots, (std::vector<int>{2, 1, 1}));

  testing::write_text(folder / "two", "a\nb\n");
  RankFlags flags{folder / "two", 0};
  flags.slots = 4;
  EXPECT_EQ(find({}, flags).slots, (std::vector<int>{4, 4}));
  flags.central = true;
  EXPECT_EQ(find({}, flags).slots, (std::vector<int>{1, 4}));
  flags = taking_slots(0, false);
  flags.slots = 4;
  try {
    find({}, flags);
    ADD_FAILURE() << "taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::usage);
    EXPECT_NE(std::string(error.what()).find("--slots 4 and the slots of nodefile"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace duplex::tools
