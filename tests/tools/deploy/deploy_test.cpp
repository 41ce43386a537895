// Tests launch --deploy and --undeploy: what machines get, what is sent again, and what is said of
// machines that cannot be used.
#include <unistd.h>

#include "tests/tools/deploy/machines.h"
#include "tools/deploy/deployed.h"

namespace duplex::tools::testing {
namespace {

namespace fs = std::filesystem;

mode_t mode_of(const std::string& path) {
  struct stat status {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
  return status.st_mode & 0777U;
}

void expect_says(const Result& result, const std::string& text) {
  EXPECT_NE(result.err.find(text), std::string::npos) << "'" << text << "' is not in\n"
                                                      << result.err;
}

TEST_F(Deploying, GivesEveryMachineTheProgramOnceAndThenOnlyWhatDiffers) {
  const Result first = deploy();
  EXPECT_EQ(first.exit, 0) << first.err;
  expect_says(first, "launch: 198.51.100.1: ready: 2.");
  EXPECT_EQ(calls(), "220");
  for (const std::string host : {"198.51.100.1", "198.51.100.2"}) {
    for (const char* file : {"MANIFEST", "duplex", "lib/a.so", "lib/b.so"})
      EXPECT_EQ(read_text(on(host, std::string("duplex-1.0/") + file)),
                read_text(bundle_ + "/" + file))
          << host << " " << file;
    EXPECT_EQ(Process({"--version"}, on(host, "duplex-1.0/duplex")).wait().exit, 0);
    EXPECT_EQ(mode_of(on(host, "")), 0700U);
    EXPECT_FALSE(fs::exists(on(host, ".duplex-part")));
    EXPECT_FALSE(fs::exists(on(host, ".duplex-lock")));
  }

  const Result second = deploy();
  EXPECT_EQ(second.exit, 0) << second.err;
  expect_says(second, "launch: 198.51.100.2: has all");
  EXPECT_EQ(calls(), "110");

  // One machine's copy is damaged, and has another file beside.
  write_text(on("198.51.100.2", "duplex-1.0/lib/b.so"), "damaged");
  const Result third = deploy();
  EXPECT_EQ(third.exit, 0) << third.err;
  EXPECT_EQ(calls(), "120");
  expect_says(third, "launch: 198.51.100.1: has all");
  expect_says(third, "launch: 198.51.100.2: ready: ");
  EXPECT_EQ(read_text(on("198.51.100.2", "duplex-1.0/lib/b.so")), read_text(bundle_ + "/lib/b.so"));

  // A newer build of the same version lacks a file and has another one.
  fs::rename(bundle_ + "/lib/a.so", bundle_ + "/lib/c.so");
  pack();
  const Result newer = deploy();
  EXPECT_EQ(newer.exit, 0) << newer.err;
  EXPECT_TRUE(fs::exists(on("198.51.100.1", "duplex-1.0/lib/c.so")));
  EXPECT_FALSE(fs::exists(on("198.51.100.1", "duplex-1.0/lib/a.so")));
}

TEST_F(Deploying, GoesOnWhereItWasCutOff) {
  write_text(folder_ / "cut-198.51.100.2", "1500000");
  const Result cut = deploy();
  EXPECT_EQ(cut.exit, 1);
  expect_says(cut, "launch: 198.51.100.1: ready");
  expect_says(cut, "launch: 1 of 2 machines (198.51.100.2) could not be made ready");
  EXPECT_FALSE(fs::exists(on("198.51.100.2", "duplex-1.0")));
  EXPECT_EQ(read_text(on("198.51.100.2", ".duplex-part/duplex-1.0/lib/a.so")),
            read_text(bundle_ + "/lib/a.so"));

  fs::remove(folder_ / "cut-198.51.100.2");
  const Result whole = deploy();
  EXPECT_EQ(whole.exit, 0) << whole.err;
  expect_says(whole, "launch: 198.51.100.2: ready: 1.0 MB sent");  // The whole has 2.0 MB.
  EXPECT_EQ(read_text(on("198.51.100.2", "duplex-1.0/lib/b.so")), read_text(bundle_ + "/lib/b.so"));
}

TEST_F(Deploying, ALargeFileGoesOnFromTheBytesThatAreThere) {
  const std::string data = folder_ / "images.pack";
  write_text(data, read_text(bundle_ + "/lib/a.so"));
  const Machines machines{folder_ / "ssh", {"198.51.100.1"}};
  const Deployed target{there_};
  const auto send = [&] {
    Cargo cargo;
    cargo.files.push_back(deployed_file(data));
    tools::deploy(target, machines, cargo);
  };
  write_text(folder_ / "cut-198.51.100.1", "400000");
  EXPECT_THROW(send(), Error);
  const std::string there = on("198.51.100.1", "files/" + deployed_file(data).name());
  EXPECT_FALSE(fs::exists(there));
  EXPECT_EQ(read_text(there + ".part").size(), 400000U);

  // So many more bytes are enough, if those that are there count.
  write_text(folder_ / "cut-198.51.100.1", "700000");
  send();
  EXPECT_EQ(read_text(there), read_text(data));
  EXPECT_FALSE(fs::exists(there + ".part"));

  // Damage on the disk is found, and the whole is sent again.
  fs::remove(folder_ / "cut-198.51.100.1");
  write_text(there, read_text(data).replace(500, 1, "x"));
  send();
  EXPECT_EQ(read_text(there), read_text(data));
  // The part that is left there is of another file.
  fs::remove(there);
  write_text(there + ".part", "something else");  // It is appended to, and then dropped.
  EXPECT_THROW(send(), Error);
  EXPECT_FALSE(fs::exists(there));
  send();
  EXPECT_EQ(read_text(there), read_text(data));
}

TEST_F(Deploying, SaysWhichMachineCannotBeUsedAndWhyAndFinishesTheOthers) {
  write_text(nodes_,
             "198.51.100.1\n198.51.100.2\n198.51.100.3\n198.51.100.4\n198.51.100.5\n"
             "198.51.100.6\n198.51.100.7\n");
  const std::string usual = "exec /bin/uname \"$@\"\n";
  give("198.51.100.2", "uname", "[ \"$1\" != -m ] || { echo aarch64; exit; }\n" + usual);
  give("198.51.100.3", "uname", "[ \"$1\" != -r ] || { echo 2.6.32-754.el6; exit; }\n" + usual);
  give("198.51.100.4", "df",
       "echo Filesystem 1024-blocks Used Available Capacity Mounted on\n"
       "echo /dev/sda1 100000 90000 10000 90% /tmp\n");
  write_text(folder_ / "down-198.51.100.5",
             "@@@@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @@@@\n"
             "Offending ED25519 key in /home/u/.ssh/known_hosts:3\n"
             "Host key verification failed.\n");
  write_text(folder_ / "down-198.51.100.6", "u@198.51.100.6: Permission denied (publickey).\r\n");
  fs::create_directories(on("198.51.100.7", ""));
  write_text(on("198.51.100.7", "mine"), "mine");
  const Result result =
      launch({"--deploy", there_, "--bundle", bundle_}, {"--net", "lenet", "--datadir", nodes_});
  EXPECT_EQ(result.exit, 1);
  expect_says(result, "launch: 198.51.100.1: ready");
  expect_says(result,
              "launch: 198.51.100.2: its processor is aarch64, and the bundle is for x86_64\n");
  expect_says(result,
              "launch: 198.51.100.3: its Linux is 2.6.32-754.el6, and the bundle needs 3.10 or "
              "newer\n");
  expect_says(result, "launch: 198.51.100.4: its disk is too full for ");
  expect_says(result, " are needed, and 10.2 MB are free\n");
  expect_says(result,
              "launch: 198.51.100.5: Host key verification failed. (Offending ED25519 key in "
              "/home/u/.ssh/known_hosts:3)\n");
  expect_says(result, "launch: 198.51.100.6: u@198.51.100.6: Permission denied (publickey).\n");
  expect_says(result, "launch: 198.51.100.7: ");
  expect_says(result, " has other files in it, and launch --deploy has not made it");
  expect_says(result, "launch: 6 of 7 machines (198.51.100.2, ");
  EXPECT_EQ(result.err.find("rank"), std::string::npos) << result.err;  // None was started.
  for (const std::string host : {"198.51.100.2", "198.51.100.3", "198.51.100.5", "198.51.100.6"})
    EXPECT_FALSE(fs::exists(on(host, ""))) << host;
  EXPECT_FALSE(fs::exists(on("198.51.100.4", "duplex-1.0")));
  EXPECT_EQ(read_text(on("198.51.100.7", "mine")), "mine");
  EXPECT_FALSE(fs::exists(on("198.51.100.7", ".duplex-deploy")));
}

TEST_F(Deploying, ABadBundleIsFoundBeforeAnythingIsSent) {
  const auto refused = [&](const std::string& text, int code) {
    const Result result = deploy();
    EXPECT_EQ(result.exit, code);
    expect_says(result, text);
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_EQ(calls(), "000");
  };
  const std::string library = read_text(bundle_ + "/lib/b.so");
  write_text(bundle_ + "/lib/b.so", library + "x");
  refused("lib/b.so is not what MANIFEST says", 1);
  fs::remove(bundle_ + "/lib/b.so");
  refused(" lacks lib/b.so", 1);
  write_text(bundle_ + "/lib/b.so", library);
  const std::string manifest = read_text(bundle_ + "/MANIFEST");
  write_text(bundle_ + "/MANIFEST", manifest + std::string(64, '0') + "  ../../etc/passwd\n");
  refused("MANIFEST has the line", 1);
  write_program("made/duplex-1.0/duplex", "echo 'duplex   0.9, commit old'\n");
  pack();
  refused(" is of 0.9, commit old, and this program of 1.0, commit ", 1);
  refused(": `make bundle` makes that of this program; or run the bundle's own", 1);
  fs::remove(bundle_ + "/MANIFEST");
  refused(" has no MANIFEST", 1);
}

TEST_F(Deploying, TakesAnArchive) {
  const std::string archive = folder_ / "duplex-1.0-linux-x86_64.tar.gz";
  const std::string pack = "tar -czf " + archive + " -C " + folder_ / "made";
  ASSERT_EQ(std::system((pack + " duplex-1.0").c_str()), 0);
  const auto deployed = [&] { return launch({"--deploy", there_, "--bundle", archive}); };
  EXPECT_EQ(deployed().exit, 0);
  EXPECT_TRUE(fs::exists(on("198.51.100.1", "duplex-1.0/lib/a.so")));
  calls();
  fs::resize_file(archive, fs::file_size(archive) / 2);
  const Result cut = deployed();
  EXPECT_EQ(cut.exit, 1);
  expect_says(cut, " cannot be unpacked: ");
  fs::rename(bundle_, folder_ / "made/duplex-0.9");
  ASSERT_EQ(std::system((pack + " duplex-0.9").c_str()), 0);
  const Result older = deployed();
  EXPECT_EQ(older.exit, 1);
  expect_says(older, " holds duplex-0.9, and this program's is duplex-1.0");
  EXPECT_EQ(calls(), "000");
}

TEST_F(Deploying, RemovesWhatItHasMadeAndNothingElse) {
  ASSERT_EQ(deploy().exit, 0);
  const std::string here = "198.51.100.1", other = "198.51.100.2";
  // One machine has the results of two runs, of which one is at home; the other has a user's file.
  for (const char* name : {"runs/home-1", "runs/away-2"}) fs::create_directories(on(here, name));
  write_text(on(here, "runs/home-1/.brought-home"), "");
  write_text(on(here, "runs/away-2/rank-1.json"), "{}");
  write_text(on(other, "mine"), "mine");
  const Result removed = launch({"--undeploy", there_});
  EXPECT_EQ(removed.exit, 0) << removed.err;
  expect_says(removed, "kept " + on(here, "runs/away-2") + ": results that are not at home");
  expect_says(removed, " is removed but for files that launch --deploy has not made");
  EXPECT_EQ(read_text(on(here, "runs/away-2/rank-1.json")), "{}");
  EXPECT_FALSE(fs::exists(on(here, "runs/home-1")));
  EXPECT_FALSE(fs::exists(on(here, "duplex-1.0")));
  EXPECT_FALSE(fs::exists(on(here, "files")));
  EXPECT_EQ(read_text(on(other, "mine")), "mine");
  EXPECT_FALSE(fs::exists(on(other, ".duplex-deploy")));

  // The folder that is left is no deploy's any more.
  const Result again = launch({"--undeploy", there_});
  EXPECT_EQ(again.exit, 1);
  expect_says(again, "launch: " + other + ": ");
  expect_says(again, " stays: there is no .duplex-deploy of yours in it");
  EXPECT_EQ(read_text(on(other, "mine")), "mine");
}

TEST_F(Deploying, TakesAnyFolderNameAndRunsNoneOfIt) {
  const std::string odd =
      "/it's a \"$(touch " + folder_ / "run" + ")\" -x; `touch " + folder_ / "run" + "`";
  const Result result = launch({"--deploy", folder_ / "there" + odd, "--bundle", bundle_});
  // The folder's name has slashes, since it names a file; it is that deep.
  EXPECT_EQ(result.exit, 0) << result.err;
  EXPECT_FALSE(fs::exists(folder_ / "run"));
  for (const char* bad : {"duplex", "-x", "", "/", "/tmp/..", "/tmp/a\nb"}) {
    const Result refused = launch({std::string("--deploy=") + bad, "--bundle", bundle_});
    EXPECT_EQ(refused.exit, 2) << bad << refused.err;
    EXPECT_EQ(std::count(refused.err.begin(), refused.err.end(), '\n'), 1) << refused.err;
  }
}

TEST_F(Deploying, FlagsThatDoNotGoTogetherAreRefused) {
  const auto refused = [&](const std::vector<std::string>& flags,
                           const std::vector<std::string>& dist, const std::string& text) {
    const Result result = launch(flags, dist);
    EXPECT_EQ(result.exit, 2) << result.err;
    expect_says(result, text);
  };
  refused({"--bundle", bundle_}, {"--net", "lenet"}, "--deploy");
  refused({"--deploy", there_, "--undeploy", there_}, {}, "--undeploy");
  refused({"--undeploy", there_}, {"--net", "lenet"}, "--undeploy goes with");
  refused({}, {"--net", "lenet", "--deploy", there_}, "give --deploy to launch itself");
  refused({"--deploy", there_, "--deploy-data"}, {"--net", "lenet"}, "which is not given");
  refused({"--deploy", there_, "--deploy-data"}, {"--net", "lenet", "--datadir", folder_.path()},
          " is a folder: `duplex pack");
}

TEST_F(Deploying, RanksElsewhereHaveThePathsOfTheirMachine) {
  const std::string data = folder_ / "data set.pack", profile = folder_ / "profile.json";
  write_text(data, "pixels");
  write_text(profile, "{}");
  write_text(nodes_, "198.51.100.1\n127.0.0.1\n");
  const Result result = launch(
      {"--deploy", there_, "--print-commands"},
      {"--net", "lenet", "--datadir", data, "--key=" + (folder_ / "key"), "--logdir", "runs/x",
       "--save", "w.safetensors", "--tensorboard", "tb", "--device", "replay:" + profile});
  // There is no key to read.
  EXPECT_EQ(result.exit, 1);
  write_text(folder_ / "key", "key\n");
  const Result printed = launch(
      {"--deploy", there_, "--print-commands"},
      {"--net", "lenet", "--datadir", data, "--key=" + (folder_ / "key"), "--logdir", "runs/x",
       "--save", "w.safetensors", "--tensorboard", "tb", "--device", "replay:" + profile});
  EXPECT_EQ(printed.exit, 0) << printed.err;
  EXPECT_EQ(calls(), "000");
  const std::string far = printed.out.substr(0, printed.out.find('\n')),
                    near = printed.out.substr(printed.out.find('\n') + 1);
  const Deployed target{there_};
  const auto has = [](const std::string& line, const std::string& text) {
    EXPECT_NE(line.find(text), std::string::npos) << text << " is not in\n" << line;
  };
  has(far, there_ + "/duplex-1.0/duplex dist --net lenet --datadir " +
               target.path_of(deployed_file(data)) +
               " --key=" + target.path_of(deployed_file(folder_ / "key")) + " --logdir " +
               target.run_path("runs/x") + " --save " + target.run_path("runs/x") +
               "/saved-w.safetensors --tensorboard " + target.run_path("runs/x") +
               " --device replay:" + target.path_of(deployed_file(profile)) + " --nodefile " +
               target.path_of(deployed_file(nodes_)) + " --index 0");
  EXPECT_EQ(target.path_of(deployed_file(data)).substr(there_.size() + 7 + 17), "data_set.pack");
  has(near, there_ + "/duplex-1.0/duplex dist --net lenet --datadir '" + data +
                "' --key=" + (folder_ / "key") +
                " --logdir runs/x --save w.safetensors --tensorboard tb --device replay:" +
                profile + " --nodefile " + nodes_ + " --index 1");
}

}  // namespace
}  // namespace duplex::tools::testing
