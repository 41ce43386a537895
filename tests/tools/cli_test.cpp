// Tests the command line as a user sees it: output, exit codes, and one clear line for each error.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <thread>

#include "tests/temporary_folder.h"
#include "tests/tools/program.h"
#include "tools/text/cells.h"

namespace duplex::tools::testing {
namespace {

/// Expects an exit code, and one line on standard error that has all of `parts`.
void expect_error(const Result& result, int exit, const std::vector<std::string>& parts) {
  EXPECT_EQ(result.exit, exit) << result.err;
  const std::size_t begin = result.err.rfind("duplex: ");
  ASSERT_NE(begin, std::string::npos) << result.err;
  const std::string line = result.err.substr(begin);
  EXPECT_EQ(line.find('\n'), line.size() - 1) << line;
  for (const std::string& part : parts)
    EXPECT_NE(line.find(part), std::string::npos) << part << "\n" << line;
}

class Cli : public ::testing::Test {
 protected:
  Cli() { write_squares(data_.path(), 60, 20); }

  std::vector<std::string> local(const std::vector<std::string>& more) const {
    // No run takes a directory that another run has used.
    std::filesystem::remove_all(folder_ / "run");
    std::vector<std::string> arguments{
        "local",         "--net",     "lenet", "--datadir", data_.path(), "--logdir",
        folder_ / "run", "--threads", "1",     "--batch",   "10"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  TemporaryFolder data_, folder_;
};

TEST_F(Cli, HelpNamesCommandsAndFlags) {
  const Result help = run({"--help"});
  EXPECT_EQ(help.exit, 0);
  for (const char* command : {"local", "dist", "nets", "pack"}) {
    EXPECT_NE(help.out.find(command), std::string::npos) << command;
    const Result own = run({command, "--help"});
    EXPECT_EQ(own.exit, 0) << command;
    EXPECT_NE(own.out.find("duplex " + std::string(command)), std::string::npos) << own.out;
  }
  EXPECT_EQ(run({}).exit, 2);
}

TEST_F(Cli, HelpFitsATerminalOf80Columns) {
  for (const char* command :
       {"local", "dist", "launch", "transport", "estimate", "simulate", "report", "compare",
        "bench", "nets", "pack", "keygen", "evaluate", "classify", "partition"}) {
    std::istringstream lines(run({command, "--help"}).out);
    for (std::string line; std::getline(lines, line);)
      EXPECT_LE(line.size(), 80U) << command << ": " << line;
  }
}

TEST_F(Cli, UsageErrorsEndWithTwo) {
  EXPECT_EQ(run({"trian"}).exit, 2);
  expect_error(run({"local", "--datadir", data_.path()}), 2, {"--net"});
  expect_error(run({"local", "--net", "lenet"}), 2, {"--datadir"});
  expect_error(run(local({"--learning-rate", "1"})), 2, {"--learning-rate"});
  expect_error(run({"local", "--net", "lenet", "--datadir", data_.path(), "--batch", "0"}), 2,
               {"--batch", "from 1 to"});
  expect_error(run({"local", "--net", "lenet", "--datadir", data_.path(), "--batch", "61"}), 2,
               {"61", "60"});
  expect_error(run(local({"--lr", "nan"})), 2, {"--lr", "nan"});
  for (const char* flag : {"--epochs", "--batches", "--warmup", "--lr-steps", "--seed"})
    expect_error(run(local({std::string(flag) + "=-1"})), 2, {flag, "'-1'"});
  expect_error(run(local({"--epochs", "99999999999999999999"})), 2, {"--epochs"});
  expect_error(run(local({"--test-fraction", "0.95"})), 2, {"--test-fraction", "0 to 0.9"});
  expect_error(run(local({"--batch", "11"})), 2, {"--batch"});
  expect_error(run(local({"--optimizer", "adagrad"})), 2, {"--optimizer", "adam"});
  expect_error(run(local({"--optimizer", "adam", "--momentum", "0.9"})), 2, {"--momentum"});
  expect_error(run(local({"--classes", "9"})), 2, {"--classes 9", "10"});
  expect_error(run(local({"--device", "abacus"})), 2, {"abacus", "reference"});
  expect_error(run({"nets", "lenet5"}), 2, {"lenet5", "googlenet", "vgg16e"});
  expect_error(run({"local", "--net", "lenet5", "--datadir", data_.path()}), 2,
               {"lenet5", "lenet"});
}

/// Not that --net is missing.
TEST_F(Cli, AMisspeltFlagIsNamed) {
  expect_error(run({"local", "--nett", "lenet"}), 2, {"local: unknown: --nett lenet (see"});
}

TEST_F(Cli, MissingAndUnreadableThingsEndWithOne) {
  expect_error(run({"local", "--net", "lenet", "--datadir", folder_ / "nowhere"}), 1,
               {folder_ / "nowhere"});
  expect_error(run({"local", "--net", "lenet", "--datadir", folder_.path()}), 1, {folder_.path()});
  expect_error(run(local({"--weights", folder_ / "none.safetensors"})), 1, {"none.safetensors"});
  write_text(folder_ / "text.safetensors", "not weights");
  expect_error(run(local({"--weights", folder_ / "text.safetensors"})), 1, {"text.safetensors"});
  write_text(folder_ / "file", "");
  expect_error(
      run({"local", "--net", "lenet", "--datadir", data_.path(), "--logdir", folder_ / "file/run"}),
      1, {"file/run"});
  expect_error(run(local({"--save", folder_ / "no/such/folder.safetensors"})), 1,
               {"no/such/folder"});
}

TEST_F(Cli, NoSpaceLeavesNoHalfWrittenFile) {
  const Result result = run(local({"--batches", "1", "--save", "/dev/full"}));
  EXPECT_EQ(result.exit, 1);
  EXPECT_NE(result.err.find("/dev/full"), std::string::npos) << result.err;
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
}

TEST_F(Cli, WeightsThatDoNotFitAreListed) {
  ASSERT_EQ(
      run(local({"--batches", "1", "--classes", "11", "--save", folder_ / "eleven.safetensors"}))
          .exit,
      0);
  expect_error(run(local({"--weights", folder_ / "eleven.safetensors"})), 1,
               {"fc2.weight (11x500 in the file, 10x500 in the network)", "fc2.bias"});
}

TEST_F(Cli, LocalWritesARunDirectory) {
  const Result result = run(local({"--epochs", "2", "--lr", "0.05", "--accuracy", "--profile"}));
  ASSERT_EQ(result.exit, 0) << result.err;
  for (const char* name :
       {"config.json", "metrics.csv", "summary.json", "profile.json", "checkpoint.safetensors"}) {
    EXPECT_GT(std::filesystem::file_size(folder_ / (std::string("run/") + name)), 0U) << name;
  }
  for (const char* part : {"t_grad", "top-1", "top-5", "conv1", "GFLOP/s"}) {
    EXPECT_NE(result.out.find(part), std::string::npos) << part << "\n" << result.out;
  }
  const std::string metrics = read_text(folder_ / "run/metrics.csv");
  EXPECT_EQ(std::count(metrics.begin(), metrics.end(), '\n'), 1 + 12);
}

TEST_F(Cli, BatchesAloneSayHowLong) {
  const auto steps = [&](const std::vector<std::string>& more) {
    const Result result = run(local(more));
    EXPECT_EQ(result.exit, 0) << result.err;
    return nlohmann::json::parse(read_text(folder_ / "run/summary.json")).at("steps").get<int>();
  };
  EXPECT_EQ(steps({}), 6);  // One epoch is 60 images in batches of 10.
  EXPECT_EQ(steps({"--batches", "11"}), 11);
  EXPECT_EQ(steps({"--batches", "11", "--epochs", "1"}), 6);
  EXPECT_EQ(steps({"--batches", "3", "--epochs", "2"}), 3);
  EXPECT_EQ(steps({"--batches", "0", "--epochs", "2"}), 0);
  EXPECT_EQ(steps({"--batches", "0"}), 0);
}

TEST_F(Cli, NoRunTakesAnothersDirectory) {
  const std::vector<std::string> training = local({"--batches", "2"});
  ASSERT_EQ(run(training).exit, 0);
  const std::string metrics = read_text(folder_ / "run/metrics.csv");
  expect_error(run(training), 2, {folder_ / "run", "holds a run already", "--logdir"});
  EXPECT_EQ(read_text(folder_ / "run/metrics.csv"), metrics);
  // Runs of other commands are kept out, too.
  const std::string run_folder = folder_ / "run";
  const std::string port = std::to_string(free_ports(1)[0]);
  write_text(folder_ / "node", "127.0.0.1:" + port + "\n");
  const std::vector<std::vector<std::string>> others{
      {"dist", "--net", "lenet", "--device", "replay:0.001", "--batches", "2", "--nodefile",
       folder_ / "node", "--index", "0"},
      {"transport", "--net", "lenet", "--my-address", "127.0.0.1:" + port, "--other-address",
       "127.0.0.1:1", "--my-role", "ps"},
      {"simulate", "--net", "lenet", "--t-grad", "0.1", "--rate", "1Gbit/s", "--workers", "2"}};
  for (const std::vector<std::string>& other : others)
    expect_error(run(plus(other, {"--logdir", run_folder})), 2,
                 {run_folder, "holds a run already", "config.json"});
  EXPECT_EQ(read_text(folder_ / "run/metrics.csv"), metrics);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run/ledger-0.csv"));

  // Neither does a run take a directory with a file that it would write over.
  for (const char* stray : {"metrics.csv", "rank-1.json", "ledger-1.csv"}) {
    std::filesystem::create_directory(folder_ / stray);
    write_text(folder_ / (std::string(stray) + "/" + stray), "mine");
    expect_error(run(plus(others[2], {"--logdir", folder_ / stray})), 2, {stray, "holds a run"});
    EXPECT_EQ(read_text(folder_ / (std::string(stray) + "/" + stray)), "mine");
  }
  std::filesystem::create_directory(folder_ / "notes");
  write_text(folder_ / "notes/thesis.tex", "mine");
  EXPECT_EQ(run(plus(others[2], {"--logdir", folder_ / "notes"})).exit, 0);

  // Runs without --logdir name their directories by the second; those of one second still differ.
  std::vector<std::string> unnamed = training;
  unnamed.erase(std::find(unnamed.begin(), unnamed.end(), "--logdir"),
                std::find(unnamed.begin(), unnamed.end(), "--threads"));
  std::vector<Process> runs;
  for (int i = 0; i < 3; ++i) runs.emplace_back(unnamed);
  std::set<std::string> directories;
  for (Process& process : runs) {
    const Result result = process.wait();
    EXPECT_EQ(result.exit, 0) << result.err;
    const std::size_t at = result.out.find("run      ");
    ASSERT_NE(at, std::string::npos) << result.out;
    directories.insert(result.out.substr(at + 9, result.out.find('\n', at) - at - 9));
  }
  EXPECT_EQ(directories.size(), 3U);
  for (const std::string& directory : directories) std::filesystem::remove_all(directory);
}

TEST_F(Cli, WhatAKilledRunHasClaimedIsFree) {
  const std::vector<std::string> transport{
      "transport",       "--net",        "lenet",
      "--my-role",       "ps",           "--logdir",
      folder_ / "link",  "--my-address", "127.0.0.1:" + std::to_string(free_ports(1)[0]),
      "--other-address", "127.0.0.1:1",  "--timeout"};
  Process waiting(plus(transport, {"30"}));
  for (int i = 0; i < 2000 && !std::filesystem::exists(folder_ / "link/transport-ps.json"); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  expect_error(run(plus(transport, {"0.2"})), 2, {"holds a run already", "transport-ps.json"});
  waiting.kill(SIGKILL);
  waiting.wait();
  EXPECT_TRUE(std::filesystem::exists(folder_ / "link/transport-ps.json"));
  expect_error(run(plus(transport, {"0.2"})), 4, {"in vain for rank 1"});
  EXPECT_FALSE(std::filesystem::exists(folder_ / "link/transport-ps.json"));
}

TEST(Program, TellsItsVersion) {
  const Result result = run({"--version"});
  EXPECT_EQ(result.exit, 0);
  for (const char* part :
       {"duplex   1.", "commit ", "compiler ", "cpu      ", "gpu      ", "protocol version 6"})
    EXPECT_NE(result.out.find(part), std::string::npos) << part << "\n" << result.out;
}

/// Tests between epochs change nothing in the training.
TEST_F(Cli, TestsBetweenEpochs) {
  const std::vector<std::string> training{"--epochs", "5", "--lr", "0.05", "--save"};
  const auto with = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), training.begin(), training.end());
    const Result result = run(local(flags));
    EXPECT_EQ(result.exit, 0) << result.err;
    return result.out;
  };
  with({folder_ / "without"});
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run/accuracy.csv"));
  const std::string out = with({folder_ / "with", "--test-every", "2"});
  EXPECT_EQ(read_text(folder_ / "with"), read_text(folder_ / "without"));
  for (const char* told : {"after 12 steps", "after 24 steps", "after 30 steps"})
    EXPECT_NE(out.find(told), std::string::npos) << out;

  std::istringstream rows(read_text(folder_ / "run/accuracy.csv"));
  std::string row, last;
  std::vector<std::string> begins;
  while (std::getline(rows, row)) begins.push_back((last = row).substr(0, row.find(",20")));
  EXPECT_EQ(begins, (std::vector<std::string>{"step,epoch,samples,top1,top5,loss,test_ns", "12,2",
                                              "24,4", "30,5"}));
  const auto accuracy = nlohmann::json::parse(read_text(folder_ / "run/summary.json"))["accuracy"];
  EXPECT_NEAR(std::stod(cells_of(last, ',').at(3)), accuracy["top1"].get<double>(), 1e-8) << last;
  expect_error(run(local({"--test-every", "0"})), 2, {"--test-every"});
}

TEST_F(Cli, TrainedWeightsAreReadBack) {
  ASSERT_EQ(
      run(local({"--epochs", "8", "--lr", "0.05", "--momentum", "0.9", "--save", folder_ / "w"}))
          .exit,
      0);
  const Result result = run(local({"--epochs", "0", "--accuracy", "--weights", folder_ / "w"}));
  ASSERT_EQ(result.exit, 0) << result.err;
  EXPECT_NE(result.out.find("top-1 100.00%"), std::string::npos) << result.out;
}

TEST_F(Cli, PackedImagesTrainLikeTheFolder) {
  const auto image = [&](const std::string& name, const std::string& recorded) {
    std::filesystem::create_directories(folder_ / "images/001.one");
    std::filesystem::create_directories(folder_ / "images/002.two");
    std::filesystem::copy_file("tests/datasets/images/" + recorded, folder_ / ("images/" + name));
  };
  for (const char* number : {"1", "2", "3", "4", "5"}) {
    image("001.one/" + std::string(number) + ".jpg", "large.jpg");
    image("002.two/" + std::string(number) + ".jpg", "grey.jpg");
  }
  write_text(folder_ / "images/001.one/6.jpg", "no image");

  const Result packed = run({"pack", "--datadir", folder_ / "images", "--output", folder_ / "pack",
                             "--input", "28", "--grey"});
  ASSERT_EQ(packed.exit, 0) << packed.err;
  EXPECT_NE(packed.out.find("001.one/6.jpg"), std::string::npos) << packed.out;
  const auto train = [&](const std::string& data, const std::string& name) {
    const Result result =
        run({"local", "--net", "lenet", "--datadir", data, "--logdir", folder_ / name, "--batch",
             "4", "--batches", "2", "--threads", "1", "--save", folder_ / (name + ".weights")});
    EXPECT_EQ(result.exit, 0) << result.err;
    return read_text(folder_ / (name + ".weights"));
  };
  EXPECT_TRUE(train(folder_ / "images", "from-folder") == train(folder_ / "pack", "from-pack"));

  expect_error(
      run({"pack", "--datadir", folder_ / "images", "--output", folder_ / "strict", "--strict"}), 1,
      {"001.one/6.jpg"});
  EXPECT_FALSE(std::filesystem::exists(folder_ / "strict"));
}

TEST_F(Cli, CompareWantsRunsThatEnded) {
  expect_error(run({"compare", folder_.path()}), 1, {"config.json"});
  ASSERT_EQ(run(local({})).exit, 0);
  const Result result = run({"compare", folder_ / "run"});
  EXPECT_EQ(result.exit, 0) << result.err;
  EXPECT_NE(result.out.find("S meas."), std::string::npos);
  // Runs that have not ended are left out, wherever they stand.
  std::filesystem::create_directory(folder_ / "never");
  write_text(folder_ / "never/config.json", "");
  const Result rest = run({"compare", folder_ / "never", folder_ / "run"});
  EXPECT_EQ(rest.exit, 0) << rest.err;
  EXPECT_NE(rest.err.find("never/config.json is damaged: it is empty"), std::string::npos)
      << rest.err;
  EXPECT_EQ(
      run({"report", folder_ / "never", folder_ / "run", "--output", folder_ / "page.html"}).exit,
      0);
  expect_error(run({"compare", folder_ / "never"}), 1, {"it is empty"});
  write_text(folder_ / "run/summary.json", "{\"version\": 1");
  expect_error(run({"compare", folder_ / "run"}), 1, {"summary.json"});
}

}  // namespace
}  // namespace duplex::tools::testing
