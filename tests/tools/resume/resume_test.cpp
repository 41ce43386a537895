// Trainings that end early and go on from a checkpoint, against trainings that nothing disturbed.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <sstream>
#include <thread>

#include "tests/tools/training_runs.h"

namespace duplex::tools::testing {
namespace {

using Words = std::vector<std::string>;

class Resume : public TrainingRuns {
 protected:
  /// The command of a training in `name`, which keeps what is there.
  Words local(const std::string& name, const Words& more) const {
    return plus({"local", "--net", "lenet", "--datadir", data_.path(), "--logdir", folder_ / name,
                 "--threads", "1", "--batch", "8"},
                more);
  }
  std::string checkpoint(const std::string& name, int steps) const {
    std::string digits = std::to_string(steps);
    digits.insert(0, 10 - digits.size(), '0');
    return folder_ / (name + "/checkpoints/step-" + digits + "/rank-0.safetensors");
  }
  Weights trained(const std::string& name) const {
    return read_weights(folder_ / (name + "/checkpoint.safetensors"));
  }
  /// The first cells of each line of a file of the run, which are not times.
  std::string without_times(const std::string& name, const std::string& file) const {
    std::istringstream lines(read_text(folder_ / (name + "/" + file)));
    std::string text;
    for (std::string line; std::getline(lines, line);) {
      std::size_t end = 0;
      for (int cell = 0; cell < 4; ++cell) end = line.find(',', end + 1);
      // The run that went on was tested after 9 steps, too, which were its end.
      if (file != "accuracy.csv" || line.rfind("9,", 0) != 0) text += line.substr(0, end) + "\n";
    }
    return text;
  }
  void expect_the_same(const std::string& name, const std::string& undisturbed) const {
    EXPECT_EQ(trained(name), trained(undisturbed));
    for (const char* file : {"metrics.csv", "accuracy.csv"}) {
      if (!std::filesystem::exists(folder_ / (undisturbed + "/" + file))) continue;
      EXPECT_EQ(without_times(name, file), without_times(undisturbed, file));
    }
  }
  void await_file(const std::string& path) const {
    for (int i = 0; i < 2000 && !std::filesystem::exists(path); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ASSERT_TRUE(std::filesystem::exists(path)) << path;
  }
};

TEST_F(Resume, GoesOnToTheSameBits) {
  const std::vector<Words> cases{{},
                                 {"--momentum", "0.9", "--test-every", "1"},
                                 {"--optimizer", "adam", "--mirror", "--lr-steps", "9"},
                                 {"--accumulate", "3", "--momentum", "0.5"},
                                 {"--device", "reference", "--optimizer", "adam"}};
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const std::string name = "case" + std::to_string(i), whole = name + "-whole";
    SCOPED_TRACE(i);
    ASSERT_EQ(run(local(whole, plus(cases[i], {"--batches", "18"}))).exit, 0);
    ASSERT_EQ(run(local(name, plus(cases[i], {"--batches", "9", "--checkpoint-every", "4"}))).exit,
              0);
    const Result rest = run(local(name, plus(cases[i], {"--batches", "18", "--resume"})));
    ASSERT_EQ(rest.exit, 0) << rest.err;
    EXPECT_NE(rest.err.find("goes on after 9 steps"), std::string::npos) << rest.err;
    expect_the_same(name, whole);
    EXPECT_NE(read_text(folder_ / (name + "/summary.json")).find("\"steps\": 18"),
              std::string::npos);
  }
}

TEST_F(Resume, SignalsAskForACheckpoint) {
  const Words length{"--batches", "150", "--optimizer", "adam"};
  ASSERT_EQ(run(local("whole", length)).exit, 0);
  for (const auto& [signal, code] : {std::pair{SIGTERM, 143}, std::pair{SIGINT, 130}}) {
    const std::string name = "signal" + std::to_string(signal);
    Process training(local(name, length));
    await_bytes(folder_ / (name + "/metrics.csv"), 200);
    training.kill(signal);
    const Result ended = training.wait();
    EXPECT_EQ(ended.exit, code) << ended.err;
    EXPECT_NE(ended.out.find("--resume --logdir " + (folder_ / name)), std::string::npos)
        << ended.out;
    EXPECT_FALSE(std::filesystem::exists(folder_ / (name + "/summary.json")));
    ASSERT_EQ(run(local(name, plus(length, {"--resume"}))).exit, 0);
    expect_the_same(name, "whole");
  }
  // SIGUSR1 does not end it.
  Process training(local("usr1", length));
  await_bytes(folder_ / "usr1/metrics.csv", 200);
  training.kill(SIGUSR1);
  const Result ended = training.wait();
  EXPECT_EQ(ended.exit, 0) << ended.err;
  EXPECT_NE(ended.err.find("SIGUSR1: checkpoint after "), std::string::npos) << ended.err;
  expect_the_same("usr1", "whole");
}

/// Returns how many threads of a process a signal may interrupt, as the kernel tells.
int threads_open_to(int signal, int process) {
  int open = 0;
  const std::string tasks = "/proc/" + std::to_string(process) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(tasks)) {
    const std::string status = read_text(task.path().string() + "/status");
    const std::size_t mask = status.find("SigBlk:");
    if (mask == std::string::npos) continue;  // It has just ended.
    const auto blocked = std::stoull(status.substr(mask + 7), nullptr, 16);
    open += (blocked >> (signal - 1) & 1) == 0 ? 1 : 0;
  }
  return open;
}

// A handler on the stack of a thread that is in oneDNN's generated code destroys what lies there.
TEST_F(Resume, SignalsInterruptNoThreadThatComputes) {
  const Words length{"--batches", "400", "--optimizer", "adam"};
  Process training(local("asked", length));
  await_bytes(folder_ / "asked/metrics.csv", 200);
  const std::vector<int> processes = processes_with({"local", folder_ / "asked"});
  ASSERT_EQ(processes.size(), 1U);
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1})
    EXPECT_EQ(threads_open_to(signal, processes.front()), 1) << signal;
  for (int i = 0; i < 200; ++i) {
    training.kill(SIGUSR1);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const Result ended = training.wait();
  EXPECT_EQ(ended.exit, 0) << ended.err;
  EXPECT_NE(ended.err.find("SIGUSR1: checkpoint after "), std::string::npos) << ended.err;
}

TEST_F(Resume, SurvivesSigkillAndADamagedCheckpoint) {
  const Words length{"--batches", "400", "--momentum", "0.9", "--checkpoint-every", "3"};
  ASSERT_EQ(run(local("whole", length)).exit, 0);
  for (int kills = 0; kills < 3; ++kills) {
    Process training(local("killed", plus(length, {"--resume"})));
    await_file(checkpoint("killed", 9 + 30 * kills));
    training.kill(SIGKILL);
    EXPECT_EQ(training.wait().exit, 137);
  }
  // A bit of the newest checkpoint flips. The training then resumes from the one before it.
  std::vector<std::string> there;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "killed/checkpoints"))
    there.push_back(entry.path().string() + "/rank-0.safetensors");
  std::sort(there.begin(), there.end());
  there.erase(
      std::remove_if(there.begin(), there.end(),
                     [](const std::string& path) { return !std::filesystem::exists(path); }),
      there.end());
  ASSERT_GE(there.size(), 2U);
  std::string newest = read_text(there.back());
  newest[newest.size() / 2] = static_cast<char>(newest[newest.size() / 2] ^ 1);
  write_text(there.back(), newest);
  const Result rest = run(local("killed", plus(length, {"--resume"})));
  ASSERT_EQ(rest.exit, 0) << rest.err;
  EXPECT_NE(rest.err.find(there.back() + " is damaged"), std::string::npos) << rest.err;
  expect_the_same("killed", "whole");
}

TEST_F(Resume, KeepsTheLastTwo) {
  ASSERT_EQ(run(local("kept", {"--batches", "10", "--checkpoint-every", "3"})).exit, 0);
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "kept/checkpoints"))
    count += entry.is_directory();
  EXPECT_EQ(count, 2U);
  EXPECT_TRUE(std::filesystem::exists(checkpoint("kept", 9)));
  EXPECT_TRUE(std::filesystem::exists(checkpoint("kept", 10)));
  // They are weights to start from, too.
  EXPECT_EQ(
      run(local("other", {"--epochs", "0", "--accuracy", "--weights", checkpoint("kept", 10)}))
          .exit,
      0);
}

TEST_F(Resume, RefusesWhatIsAnotherTraining) {
  const Words length{"--batches", "10", "--momentum", "0.9", "--checkpoint-every", "5"};
  ASSERT_EQ(run(local("run", length)).exit, 0);
  const auto refuses = [&](const Words& words, const std::string& why, int exit = 2) {
    const Result result = run(words);
    EXPECT_EQ(result.exit, exit) << result.err;
    EXPECT_NE(result.err.find(why), std::string::npos) << result.err;
  };
  refuses(local("run", {"--batches", "20", "--momentum", "0.8", "--resume"}),
          "it has momentum 0.9, and this one has momentum 0.8");
  refuses(local("run", {"--batches", "20", "--resume"}),
          "it has momentum 0.9, and this one has less");
  refuses(local("run", {"--batches", "5", "--momentum", "0.9", "--resume"}), "further than the 5");
  refuses(local("run", length), "holds a run already");
  refuses({"local", "--net", "lenet", "--datadir", data_.path(), "--resume"}, "--logdir");
  for (const char* bad : {"0", "-1", "x", "5x", "s", "0.1s"})
    refuses(local("bad", {"--checkpoint-every", bad}), "--checkpoint-every '" + std::string(bad));
  Process training(local("busy", {"--batches", "4000"}));
  await_bytes(folder_ / "busy/metrics.csv", 200);
  refuses(local("busy", {"--batches", "4000", "--resume"}), "of a program that has not ended");
}

/// A damaged checkpoint does not take the place of one that is written behind it.
TEST_F(Resume, DamagedCheckpointsMakeWayOrAreRefused) {
  const Words often{"--checkpoint-every", "2", "--momentum", "0.9"};
  ASSERT_EQ(run(local("run", plus(often, {"--batches", "8"}))).exit, 0);
  const auto damage = [&](int steps) {
    std::string file = read_text(checkpoint("run", steps));
    file[file.size() / 2] = static_cast<char>(file[file.size() / 2] ^ 1);
    write_text(checkpoint("run", steps), file);
  };
  damage(8);
  const Result rest = run(local("run", plus(often, {"--batches", "7", "--resume"})));
  ASSERT_EQ(rest.exit, 0) << rest.err;
  EXPECT_NE(rest.err.find("goes on after 6 steps"), std::string::npos) << rest.err;
  EXPECT_TRUE(std::filesystem::exists(checkpoint("run", 7)));
  EXPECT_FALSE(std::filesystem::exists(checkpoint("run", 8)));
  damage(6);
  damage(7);
  const Result none = run(local("run", plus(often, {"--batches", "9", "--resume"})));
  EXPECT_EQ(none.exit, 1);
  EXPECT_NE(none.err.find("none of the checkpoints in "), std::string::npos) << none.err;
  EXPECT_TRUE(std::filesystem::exists(checkpoint("run", 7)));
  // A training that begins anew leaves nothing of the one before in its place.
  std::filesystem::remove_all(folder_ / "run/checkpoints");
  Process anew(local("run", plus(often, {"--batches", "100000", "--resume"})));
  await_file(checkpoint("run", 4));
  for (const char* file : {"summary.json", "checkpoint.safetensors"})
    EXPECT_FALSE(std::filesystem::exists(folder_ / (std::string("run/") + file))) << file;
  EXPECT_TRUE(std::filesystem::exists(folder_ / "run/checkpoint.1.safetensors"));
}

/// A power failure may leave rows behind those of the checkpoint, of which some are torn.
TEST_F(Resume, LeavesNoRowsOfStepsThatAreTrainedAgain) {
  const Words length{"--momentum", "0.9", "--test-every", "0.25", "--checkpoint-every", "3"};
  ASSERT_EQ(run(local("whole", plus(length, {"--batches", "12"}))).exit, 0);
  ASSERT_EQ(run(local("torn", plus(length, {"--batches", "12"}))).exit, 0);
  std::filesystem::remove_all(std::filesystem::path(checkpoint("torn", 12)).parent_path());
  for (const char* file : {"metrics.csv", "accuracy.csv"}) {
    const std::string path = folder_ / (std::string("torn/") + file);
    std::string text = read_text(path);
    const std::size_t last = text.rfind('\n', text.size() - 2) + 1;
    text.replace(last, 10, 10, '\0');
    write_text(path, text + "12,0,0.5");
  }
  const Result rest = run(local("torn", plus(length, {"--batches", "12", "--resume"})));
  ASSERT_EQ(rest.exit, 0) << rest.err;
  EXPECT_NE(rest.err.find("metrics.csv is damaged: 1 line of it that is no row will be left out"),
            std::string::npos)
      << rest.err;
  expect_the_same("torn", "whole");
}

TEST_F(Resume, WeightsAreSavedWhereTheyCanBe) {
  ASSERT_EQ(run(local("run", {"--batches", "2", "--checkpoint-every", "2"})).exit, 0);
  std::filesystem::remove(folder_ / "run/checkpoint.safetensors");
  std::filesystem::create_directory(folder_ / "run/checkpoint.safetensors");
  const std::string elsewhere = folder_ / "elsewhere.safetensors";
  const Result result = run(
      local("run", {"--batches", "4", "--checkpoint-every", "2", "--resume", "--save", elsewhere}));
  EXPECT_EQ(result.exit, 1);
  EXPECT_NE(result.err.find("checkpoint.safetensors cannot be created"), std::string::npos)
      << result.err;
  EXPECT_FALSE(read_weights(elsewhere).empty());
  EXPECT_TRUE(std::filesystem::exists(checkpoint("run", 4)));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "run/summary.json"));
}

/// There is nothing to keep yet, or any more.
TEST_F(Resume, ARequestOutsideTheStepsEndsNothing) {
  Process training(local("run", {"--batches", "40", "--checkpoint-every", "1h"}));
  await_file(folder_ / "run/config.json");
  for (int i = 0; i < 200; ++i) {
    training.kill(SIGUSR1);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  const Result result = training.wait();
  EXPECT_EQ(result.exit, 0) << result.err;
}

TEST_F(Resume, ACheckpointThatCannotBeWrittenEndsNoTraining) {
  std::filesystem::create_directory(folder_ / "run");
  std::filesystem::create_symlink("/dev/null", folder_ / "run/checkpoints");
  const Result result =
      run(local("run", {"--batches", "6", "--checkpoint-every", "2", "--resume"}));
  EXPECT_EQ(result.exit, 1);
  EXPECT_NE(result.err.find("; the training goes on"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("trained to its end, but "), std::string::npos) << result.err;
  EXPECT_FALSE(trained("run").empty());
}

}  // namespace
}  // namespace duplex::tools::testing
