// Tests records of running ranks: which are found, and which are refused. A process has one record
// at most, so forked children hold those of the ranks.
#include "tools/launch/rank_record.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "core/error.h"
#include "tests/temporary_folder.h"
#include "tests/tools/program.h"

namespace duplex::tools::testing {
namespace {

/// Runs in a forked child: makes a record, tells through `pipe` whether it has one (y, n), and
/// waits to be ended, for half a minute at most.
[[noreturn]] void hold_record(const std::string& nodefile, int rank, const std::string& folder,
                              int pipe) {
  ::alarm(30);
  const RankRecord record({nodefile}, rank, folder);
  if (::write(pipe, record.trouble().empty() ? "y" : "n", 1) != 1) ::_exit(1);
  for (;;) ::pause();
}

/// A process that has a record until it ends.
class Holder {
 public:
  Holder(const std::string& nodefile, int rank, const std::string& folder) {
    int ready[2];
    if (::pipe(ready) != 0) throw std::runtime_error("no pipe");
    process_ = ::fork();
    if (process_ == 0) hold_record(nodefile, rank, folder, ready[1]);
    ::close(ready[1]);
    char answer = 'n';
    recorded_ = ::read(ready[0], &answer, 1) == 1 && answer == 'y';
    ::close(ready[0]);
  }
  ~Holder() { kill(); }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;

  void kill() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    process_ = -1;
  }
  bool recorded() const { return recorded_; }
  pid_t process() const { return process_; }

 private:
  pid_t process_ = -1;
  bool recorded_ = false;
};

class Records : public ::testing::Test {
 protected:
  std::size_t files() const { return temporary_.files().size(); }

  TemporaryFolder temporary_;
  const std::string folder_ = temporary_ / "records";
};

TEST_F(Records, ThoseOfANodefileAreFoundWithTheirProcesses) {
  EXPECT_TRUE(running_ranks("nodes", folder_).empty());  // The folder does not exist yet.
  const Holder one("nodes", 1, folder_), zero("./x/../nodes", 0, folder_),
      other("other nodes", 0, folder_);
  ASSERT_TRUE(one.recorded() && zero.recorded() && other.recorded());
  struct stat status {};
  ASSERT_EQ(::stat(folder_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0700U);

  const auto ranks = running_ranks(std::filesystem::current_path().string() + "/nodes", folder_);
  ASSERT_EQ(ranks.size(), 2U);
  EXPECT_EQ(ranks[0].rank, 0);
  EXPECT_EQ(ranks[0].process, zero.process());
  EXPECT_EQ(ranks[1].rank, 1);
  EXPECT_EQ(ranks[1].process, one.process());
  const auto others = running_ranks("other nodes", folder_);
  ASSERT_EQ(others.size(), 1U);
  EXPECT_EQ(others[0].process, other.process());
  EXPECT_EQ(files(), 3U);
}

TEST_F(Records, ARankIsFoundByEachOfItsNodefiles) {
  const RankRecord record({"nodes", "plan.json.nodes"}, 3, folder_);
  ASSERT_EQ(record.trouble(), "");
  // This process holds the lock itself, and a child asks.
  const auto found_by = [&](const std::string& nodefile) {
    const pid_t child = ::fork();
    if (child == 0) {
      const auto ranks = running_ranks(nodefile, folder_);
      ::_exit(ranks.size() == 1 ? ranks[0].rank : 99);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WEXITSTATUS(status);
  };
  EXPECT_EQ(found_by("nodes"), 3);
  EXPECT_EQ(found_by("plan.json.nodes"), 3);
  EXPECT_EQ(found_by("nod"), 99);
  EXPECT_EQ(found_by("odes"), 99);
}

TEST_F(Records, OneGoesWithItsRank) {
  {
    const RankRecord record({"nodes"}, 0, folder_);
    EXPECT_EQ(record.trouble(), "");
    EXPECT_EQ(files(), 1U);
  }
  EXPECT_EQ(files(), 0U);
}

TEST_F(Records, StaleOnesAreRemovedAndTellOfNobody) {
  Holder killed("nodes", 0, folder_), also("nodes", 1, folder_);
  ASSERT_TRUE(killed.recorded() && also.recorded());
  killed.kill();
  EXPECT_EQ(files(), 2U);
  const Holder next("other nodes", 0, folder_);  // A rank that starts looks for stale records, too.
  EXPECT_EQ(files(), 2U);
  also.kill();
  EXPECT_TRUE(running_ranks("nodes", folder_).empty());
  EXPECT_EQ(files(), 1U);
  EXPECT_EQ(running_ranks("other nodes", folder_).size(), 1U);
}

/// A process that is about to remove a killed rank's record is not that rank, and is never
/// signalled.
TEST_F(Records, ThoseWhoSearchAtOnceAreNotTakenForRanks) {
  ASSERT_EQ(::mkdir(folder_.c_str(), 0700), 0);
  for (int i = 0; i < 3000; ++i)
    write_text(folder_ + "/" + std::to_string(i) + ".0",
               "0 " + std::filesystem::current_path().string() + "/nodes");
  std::vector<pid_t> searchers;
  for (int i = 0; i < 4; ++i) {
    searchers.push_back(::fork());
    if (searchers.back() == 0) {
      ::alarm(30);
      ::_exit(running_ranks("nodes", folder_).empty() ? 0 : 1);
    }
  }
  for (const pid_t searcher : searchers) {
    int status = -1;
    ASSERT_EQ(::waitpid(searcher, &status, 0), searcher);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(files(), 0U);
}

TEST_F(Records, ManyRanksThatStartAtOnceAllHaveTheirs) {
  constexpr int count = 16;
  std::vector<pid_t> starters;
  int done[2], go[2];
  ASSERT_EQ(::pipe(done), 0);
  ASSERT_EQ(::pipe(go), 0);
  for (int rank = 0; rank < count; ++rank) {
    starters.push_back(::fork());
    if (starters.back() == 0) {
      char byte = 0;
      ::close(go[1]);
      // The pipe's end is the signal for all ranks.
      if (::read(go[0], &byte, 1) != 0) ::_exit(1);
      hold_record("nodes", rank, folder_, done[1]);
    }
  }
  ::close(go[0]);
  ::close(go[1]);
  ::close(done[1]);
  std::string answers;
  char byte = 0;
  while (answers.size() < count && ::read(done[0], &byte, 1) == 1) answers += byte;
  EXPECT_EQ(answers, std::string(count, 'y'));
  const auto ranks = running_ranks("nodes", folder_);
  ASSERT_EQ(ranks.size(), static_cast<std::size_t>(count));
  for (int rank = 0; rank < count; ++rank) {
    EXPECT_EQ(ranks[static_cast<std::size_t>(rank)].process,
              starters[static_cast<std::size_t>(rank)]);
  }
  for (const pid_t process : starters) {
    ::kill(process, SIGKILL);
    ::waitpid(process, nullptr, 0);
  }
  ::close(done[0]);
}

TEST_F(Records, AFolderThatIsNotTheUsersAloneIsRefused) {
  const auto refused = [&](const std::string& folder, const std::string& why) {
    const RankRecord record({"nodes"}, 0, folder);
    EXPECT_NE(record.trouble().find(folder), std::string::npos) << record.trouble();
    EXPECT_NE(record.trouble().find(why), std::string::npos) << record.trouble();
    try {
      running_ranks("nodes", folder);
      ADD_FAILURE() << folder << " was taken";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what();
    }
  };
  ASSERT_EQ(::mkdir(folder_.c_str(), 0700), 0);
  ASSERT_EQ(::symlink(folder_.c_str(), (temporary_ / "link").c_str()), 0);
  refused(temporary_ / "link", "is a link");
  write_text(temporary_ / "file", "");
  refused(temporary_ / "file", "no folder");
  ASSERT_EQ(::chmod(folder_.c_str(), 0710), 0);
  refused(folder_, "accessible to others");
  ASSERT_EQ(::chmod(folder_.c_str(), 0700), 0);
  EXPECT_EQ(RankRecord({"nodes"}, 0, folder_).trouble(), "");
  // Use a folder of root, or, if root runs this, of somebody else.
  if (::geteuid() != 0) {
    refused("/", "another user");
  } else {
    ASSERT_EQ(::chown(folder_.c_str(), 1, 1), 0);
    refused(folder_, "another user");
  }
  EXPECT_EQ(files(), 1U);  // It is the one that is no folder.
}

}  // namespace
}  // namespace duplex::tools::testing
