// Tests launch --deploy where machines share a folder or are one, where runs do not begin, and
// where results come home with trouble.
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "tests/tools/deploy/machines.h"
#include "tools/deploy/deployed.h"
#include "tools/launch/hosts.h"

namespace duplex::tools::testing {
namespace {

namespace fs = std::filesystem;

class DeployTrouble : public Deploying {
 protected:
  const std::string here_ = "198.51.100.1", other_ = "198.51.100.2";

  static void expect_says(const Result& result, const std::string& text) {
    EXPECT_NE(result.err.find(text), std::string::npos) << "'" << text << "' is not in\n"
                                                        << result.err;
  }
  /// The path of the run `runs/x` on a host, which has this file of it.
  std::string with_result(const std::string& host, const std::string& name) const {
    const std::string run = on(host, "runs/" + Deployed::run_name(logdir_));
    fs::create_directories(run);
    write_text(run + "/" + name, "12\n");
    return run;
  }
  /// Launches ranks, which cannot listen at the addresses of these machines and soon end.
  Result ranks(const std::vector<std::string>& more = {}) const {
    return launch({"--deploy", there_, "--bundle", bundle_},
                  plus({"--net", "lenet", "--device", "replay:0.01", "--batches", "2", "--timeout",
                        "1", "--logdir", logdir_},
                       more));
  }
  std::vector<std::string> keys(const std::string& host) const {
    std::vector<std::string> found;
    for (const auto& file : fs::directory_iterator(on(host, "files")))
      if (file.path().string().find("-key") != std::string::npos) found.push_back(file.path());
    return found;
  }
  const std::string logdir_ = folder_ / "home/x";
};

TEST_F(DeployTrouble, AMachineOfSeveralNamesIsMadeReadyOnce) {
  write_text(nodes_, "127.0.0.1\n127.0.0.2\n127.0.0.3\n");
  for (int time = 0; time < 3; ++time) {
    fs::remove_all(there_);
    const Result result = deploy();
    EXPECT_EQ(result.exit, 0) << result.err;
    EXPECT_EQ(read_text(there_ + "/duplex-1.0/lib/a.so"), read_text(bundle_ + "/lib/a.so"));
    for (const auto& file : fs::directory_iterator(there_))
      EXPECT_EQ(file.path().string().find(".duplex-new"), std::string::npos) << file;
  }
}

TEST_F(DeployTrouble, MachinesMayShareTheFolder) {
  fs::create_directories(folder_ / "shared");
  write_text(nodes_, "198.51.100.1\n198.51.100.2\n198.51.100.3\n198.51.100.4\n");
  write_text(folder_ / "data", std::string(100000, 'x'));
  for (int time = 0; time < 3; ++time) {
    fs::remove_all(folder_ / "shared/duplex");
    const Result result = ranks({"--datadir", folder_ / "data"});
    EXPECT_EQ(result.err.find("could not be made ready"), std::string::npos) << result.err;
    expect_says(result, "ready: ");
  }
}

TEST_F(DeployTrouble, ARunThatDoesNotBeginLeavesNeitherKeyNorFolder) {
  write_text(folder_ / "down-198.51.100.2", "no way\n");
  const Result result = ranks();
  EXPECT_EQ(result.exit, 1);
  expect_says(result, "nothing was started");
  EXPECT_TRUE(fs::exists(on(here_, "duplex-1.0")));
  EXPECT_TRUE(keys(here_).empty()) << keys(here_).front();
  fs::remove(folder_ / "down-198.51.100.2");
  const Result removed = launch({"--undeploy", there_});
  EXPECT_EQ(removed.exit, 0) << removed.err;
  EXPECT_EQ(removed.err.find("kept"), std::string::npos) << removed.err;
  EXPECT_FALSE(fs::exists(on(here_, "")));
}

TEST_F(DeployTrouble, AFolderThatWasOpenIsItsUsersAlone) {
  fs::create_directories(on(here_, ""));
  ASSERT_EQ(::chmod(on(here_, "").c_str(), 0777), 0);
  ASSERT_EQ(deploy().exit, 0);
  struct stat status {};
  ASSERT_EQ(::stat(on(here_, "").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0700U);
  // A folder with other files is left as it is.
  fs::create_directories(on("198.51.100.3", ""));
  write_text(on("198.51.100.3", "mine"), "mine");
  ASSERT_EQ(::chmod(on("198.51.100.3", "").c_str(), 0755), 0);
  write_text(nodes_, "198.51.100.3\n");
  EXPECT_EQ(deploy().exit, 1);
  ASSERT_EQ(::stat(on("198.51.100.3", "").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0755U);
}

TEST_F(DeployTrouble, LeavesOutTheSameMachinesWhenItRemoves) {
  write_text(nodes_, "198.51.100.1 slots=2\n198.51.100.2\n");
  ASSERT_EQ(deploy({"--without", "1"}).exit, 0);
  EXPECT_EQ(calls().substr(1, 1), "0");
  ASSERT_EQ(launch({"--undeploy", there_, "--without", "1"}).exit, 0);
  EXPECT_EQ(calls(), "100");
}

TEST_F(DeployTrouble, AProgramThatIsRunningIsNotRemoved) {
  write_text(nodes_, here_ + "\n");
  ASSERT_EQ(deploy().exit, 0);
  fs::copy_file("/bin/sleep", on(here_, "duplex-1.0/sleep"));
  const pid_t program = ::fork();
  if (program == 0) {
    ::execl(on(here_, "duplex-1.0/sleep").c_str(), "sleep", "60", nullptr);
    ::_exit(127);
  }
  // Until then the process is still this program's.
  std::error_code none;
  const std::string link = "/proc/" + std::to_string(program) + "/exe";
  for (int i = 0; i < 10000 && fs::read_symlink(link, none).filename() != "sleep"; ++i)
    ::usleep(1000);
  ASSERT_EQ(fs::read_symlink(link, none).filename(), "sleep");
  const Result refused = launch({"--undeploy", there_});
  EXPECT_EQ(refused.exit, 1);
  expect_says(refused, "stays: its program is running");
  EXPECT_TRUE(fs::exists(on(here_, "duplex-1.0/lib/a.so")));
  ::kill(program, SIGKILL);
  ::waitpid(program, nullptr, 0);
  EXPECT_EQ(launch({"--undeploy", there_}).exit, 0);
}

TEST_F(DeployTrouble, ALoginShellMayGreet) {
  write_text(folder_ / "greeting", "Welcome to the lab\n\x1b]0;title\x07");  // No line end.
  ASSERT_EQ(deploy().exit, 0);
  with_result(here_, "ledger-0.csv");
  with_result(other_, "ledger-1.csv");
  const Result result = ranks();
  expect_says(result, "launch: 198.51.100.1: has all");
  EXPECT_EQ(result.err.find("still there"), std::string::npos) << result.err;
  EXPECT_EQ(read_text(logdir_ + "/ledger-0.csv"), "12\n");
  EXPECT_EQ(read_text(logdir_ + "/ledger-1.csv"), "12\n");
}

TEST_F(DeployTrouble, WhatCannotBePackedThereIsNotTakenForBroughtHome) {
  ASSERT_EQ(deploy().exit, 0);
  const std::string run = with_result(here_, "ledger-0.csv");
  give(here_, "tar",
       "case $1 in -cf) /bin/tar \"$@\"; echo 'tar: x: Read error' >&2; exit 2;; esac\n"
       "exec /bin/tar \"$@\"\n");
  const Result result = ranks();
  EXPECT_NE(result.exit, 0);
  expect_says(result, "its results are still there, in " + there_ + "/runs/");
  expect_says(result, "tar: x: Read error");
  EXPECT_EQ(read_text(logdir_ + "/ledger-0.csv"), "12\n");  // The others have come.
  EXPECT_FALSE(fs::exists(run + "/.brought-home"));
}

TEST_F(DeployTrouble, AMachineThatTheRunWentOnWithoutMayBeOff) {
  with_result(here_, "ledger-0.csv");
  write_text(folder_ / ("down-" + other_), "no route to host\n");
  const Deployed target = deployed_in("--deploy", there_);
  const Machines machines{folder_ / "ssh", {here_, other_}};
  EndedRun run{logdir_, "nodes", "", true, {}};
  EXPECT_THROW(bring_home(target, machines, run), Error);
  fs::remove_all(logdir_);
  run.lost = {other_};
  EXPECT_NO_THROW(bring_home(target, machines, run));
  EXPECT_EQ(read_text(logdir_ + "/ledger-0.csv"), "12\n");
}

TEST_F(DeployTrouble, SavedWeightsGoToAnotherFileSystem) {
  struct stat here {
  }, there{};
  if (::stat("/dev/shm", &there) != 0 || ::stat(folder_.path().c_str(), &here) != 0 ||
      here.st_dev == there.st_dev || ::access("/dev/shm", W_OK) != 0)
    GTEST_SKIP()
        << "/dev/shm is no writable file system of its own here, so there is none to which "
           "the weights could be moved";
  const std::string saved = "/dev/shm/duplex-test-" + std::to_string(::getpid()) + ".safetensors";
  ASSERT_EQ(deploy().exit, 0);
  with_result(here_, "saved-" + saved.substr(9));
  const Result result = ranks({"--save", saved});
  EXPECT_EQ(result.err.find("filesystem error"), std::string::npos) << result.err;
  EXPECT_TRUE(fs::exists(saved));
  EXPECT_FALSE(fs::exists(logdir_ + "/saved-" + saved.substr(9)));
  fs::remove(saved);
}

/// TensorBoard looks for them where --tensorboard says, whichever machine has the first worker.
TEST_F(DeployTrouble, EventFilesComeToTheirFolder) {
  const std::string name = "events.out.tfevents.1700000000.there.1";
  ASSERT_EQ(deploy().exit, 0);
  with_result(here_, name);
  const std::string events = folder_ / "events";
  const Result result = ranks({"--tensorboard", events});
  EXPECT_EQ(read_text(events + "/" + name), "12\n") << result.err;
  EXPECT_FALSE(fs::exists(logdir_ + "/" + name));
}

TEST_F(DeployTrouble, StopSaysWhereNothingIs) {
  const Result result = launch({"stop", "--deploy", there_});
  EXPECT_EQ(result.exit, 1);
  expect_says(result, "launch: 198.51.100.1 is not done: ");
}

TEST(QuotedWords, CshTakesThemAsTheyAre) {
  EXPECT_EQ(joined({"it's", "[!0-9]", "a"}), "'it'\\''s' '['\\!'0-9]' a");
}

}  // namespace
}  // namespace duplex::tools::testing
