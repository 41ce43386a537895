// Runs of the program with a network's file: they are to the bit those of the compiled network, and
// do not depend on what becomes of the file.
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/tools/training_runs.h"
#include "tools/flags/model_flags.h"

namespace duplex::tools::testing {
namespace {

class NetworkFileRuns : public TrainingRuns {
 protected:
  NetworkFileRuns() : path_(folder_ / "lenet.net") {
    EXPECT_EQ(run({"nets", "lenet", "--output", path_}).exit, 0);
    text_ = read_text(path_);
  }

  /// Replaces the file by one with something else in its place.
  void change(const std::string& what, const std::string& with) const {
    std::string text = text_;
    text.replace(text.find(what), what.size(), with);
    write_text(path_, text);
  }

  /// Goes on with the run `name` up to `batches`.
  Result resumed(const std::string& name, int batches) const {
    return run({"local", "--net", path_, "--datadir", data_.path(), "--logdir", folder_ / name,
                "--threads", "1", "--batch", "8", "--batches", std::to_string(batches), "--resume",
                "--checkpoint-every", "2"});
  }

  std::string path_, text_;
};

TEST_F(NetworkFileRuns, TrainTheSameBitsAsTheCompiledNetwork) {
  const std::vector<std::string> some{"--batches", "4"};
  EXPECT_EQ(alone(8, plus(some, {"--net", path_})), alone(8, some));
  const std::vector<std::string> shared = plus(some, {"--share", "auto"});
  EXPECT_EQ(together(2, 8, plus(some, {"--net", path_})), together(2, 8, some));
  for (Process& process : start("shared", 2, 8, plus(shared, {"--net", path_}))) {
    const Result result = process.wait();
    EXPECT_EQ(result.exit, 0) << result.err;
  }
}

TEST_F(NetworkFileRuns, SimulateTheSame) {
  const auto simulated = [&](const std::string& net, const std::string& name) {
    const Result result = run({"simulate", "--net", net, "--t-grad", "0.1", "--rate", "1Gbit/s",
                               "--workers", "2", "--logdir", folder_ / name});
    EXPECT_EQ(result.exit, 0) << result.err;
    return read_text(folder_ / (name + "/metrics.csv"));
  };
  EXPECT_EQ(simulated(path_, "file"), simulated("lenet", "compiled"));
}

/// The sizes of all parameters are the same, so that the digest alone tells.
TEST_F(NetworkFileRuns, RanksWithOtherFilesDoNotMeet) {
  const std::string other = folder_ / "other.net";
  change("pool1    max pool 2x2/2 valid", "pool1    max pool 2x2/2 same");
  std::filesystem::rename(path_, other);
  write_text(path_, text_ + "# A comment is no difference.\n");
  write_two_nodes();
  const auto rank = [&](int index, const std::string& net) {
    return Process({"dist", "--net", net, "--datadir", data_.path(), "--batch", "8", "--threads",
                    "1", "--batches", "2", "--nodefile", folder_ / "nodes", "--timeout", "20",
                    "--index", std::to_string(index), "--logdir",
                    folder_ / ("rank" + std::to_string(index))});
  };
  {
    Process first = rank(0, path_), second = rank(1, other);
    const Result result = first.wait();
    EXPECT_NE(result.exit, 0);
    EXPECT_NE((result.err + second.wait().err).find("network file "), std::string::npos)
        << result.err;
  }
  write_text(other, text_);
  Process first = rank(0, path_), second = rank(1, other);
  const Result result = first.wait();
  EXPECT_EQ(result.exit, 0) << result.err;
  EXPECT_EQ(second.wait().exit, 0);
}

TEST_F(NetworkFileRuns, GoOnWithoutTheFileAndNotWithAnother) {
  const std::vector<std::string> words{"--net", path_, "--checkpoint-every", "2", "--batches", "4"};
  ASSERT_EQ(run(arguments("local", "run", 8, words)).exit, 0);
  change("500 outputs", "300 outputs");
  write_text(path_, "# A comment is no difference.\n" + read_text(path_));
  const Result other = resumed("run", 6);
  EXPECT_EQ(other.exit, 2);
  EXPECT_NE(other.err.find("line 10 was 'fc1 linear 500 outputs relu' and is 'fc1 linear 300 "
                           "outputs relu'"),
            std::string::npos)
      << other.err;
  write_text(path_, "# The same network.\n" + text_);
  Result same = resumed("run", 6);
  EXPECT_EQ(same.exit, 0) << same.err;
  std::filesystem::remove(path_);
  same = resumed("run", 8);
  EXPECT_EQ(same.exit, 0) << same.err;
  write_text(path_, text_);
  EXPECT_EQ(read_weights(folder_ / "run/checkpoint.safetensors"),
            alone(8, {"--net", path_, "--batches", "8"}));
  std::filesystem::remove(path_);
  const Result report = run({"report", folder_ / "run"});
  EXPECT_EQ(report.exit, 0) << report.err;
  EXPECT_NE(read_text(folder_ / "run/report.html").find("The network of the file"),
            std::string::npos);
  const Result simulated = run({"simulate", "--from", folder_ / "run", "--rate", "1Gbit/s",
                                "--workers", "2", "--logdir", folder_ / "simulated"});
  EXPECT_EQ(simulated.exit, 0) << simulated.err;
}

/// An empty config.json is the claim of another rank that begins at the same moment.
TEST_F(NetworkFileRuns, BeginBesideAFileThatIsOnlyClaimed) {
  std::filesystem::create_directory(folder_ / "claimed");
  write_text(folder_ / "claimed/config.json", "");
  const Result result = resumed("claimed", 2);
  EXPECT_EQ(result.exit, 0) << result.err;
  EXPECT_NE(result.err.find("the training begins"), std::string::npos) << result.err;
}

TEST_F(NetworkFileRuns, LaunchGivesTheFileToRanksThatDoNotHaveIt) {
  for (int byte = 1; byte < 256; ++byte) {
    const std::string text = "a" + std::string(1, static_cast<char>(byte)) + "0";
    EXPECT_EQ(from_word(as_word(text)), text);
  }
  write_text(folder_ / "one", nodes_here(1));
  const std::vector<std::string> launch{"launch", "--nodefile", folder_ / "one"};
  const std::vector<std::string> dist{
      "--", "--net",   path_, "--datadir", data_.path(),        "--batches",
      "2",  "--batch", "8",   "--logdir",  folder_ / "launched"};
  std::vector<std::string> words = launch;
  words.emplace_back("--print-commands");
  const Result printed = run(plus(words, dist));
  ASSERT_EQ(printed.exit, 0) << printed.err;
  const std::string word = as_word(text_);
  EXPECT_NE(printed.out.find("--net-text " + word), std::string::npos) << printed.out;
  const Result launched = run(plus(launch, dist));
  EXPECT_EQ(launched.exit, 0) << launched.err;
  std::filesystem::remove(path_);
  const Result elsewhere = run(
      arguments("local", "elsewhere", 8, {"--net", path_, "--net-text", word, "--batches", "1"}));
  EXPECT_EQ(elsewhere.exit, 0) << elsewhere.err;

  // No command line has room for such a text.
  write_text(path_, text_ + "# " + std::string(60000, '%') + "\n");
  for (const auto& [host, says] : {std::pair{"198.51.100.1", true}, {"127.0.0.1", false}}) {
    write_text(folder_ / "one", host);
    const Result long_one = run(plus(words, dist));
    EXPECT_EQ(long_one.exit, 0) << long_one.err;
    EXPECT_EQ(long_one.err.find("too long to be handed") != std::string::npos, says)
        << long_one.err;
  }
}

TEST_F(NetworkFileRuns, APlanHasTheFile) {
  const std::string plan = folder_ / "plan.json";
  const Result planned =
      run({"plan", "--net", path_, "--t-grad", "0.1", "--rate", "1Gbit/s", "--machines", "2",
           "--batch", "8", "--file", plan, "--way", "join-distributed@2"});
  ASSERT_EQ(planned.exit, 0) << planned.err;
  const auto launched = [&](const std::string& name) {
    write_text(folder_ / "two", nodes_here(2));
    return run({"launch", "--nodefile", folder_ / "two", "--plan", plan, "--", "--datadir",
                data_.path(), "--batches", "2", "--threads", "1", "--logdir", folder_ / name});
  };
  change("500 outputs", "300 outputs");
  const Result changed = launched("changed");
  EXPECT_EQ(changed.exit, 2);
  EXPECT_NE(changed.err.find("is another network than in"), std::string::npos) << changed.err;
  std::filesystem::remove(path_);
  const Result gone = launched("gone");
  EXPECT_EQ(gone.exit, 0) << gone.err;
}

/// Nobody writes to the pipe, so that a program which opens it would wait for ever.
TEST_F(NetworkFileRuns, NoPipeIsOpenedThatARunOrAPlanNames) {
  const std::string pipe = folder_ / "pipe.net", logdir = folder_ / "run";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const auto name_pipe = [&](const std::string& path) {
    nlohmann::json file = nlohmann::json::parse(read_text(path));
    file["network"] = pipe;
    file.erase("network_file");
    write_text(path, file.dump());
  };
  const auto expect_refused = [&](const std::vector<std::string>& words) {
    const Result result = run(words);
    EXPECT_TRUE(result.exit == 1 || result.exit == 2) << words[0] << ": " << result.exit;
    EXPECT_NE(result.err.find(pipe), std::string::npos) << words[0] << ": " << result.err;
    EXPECT_NE(result.err.find("no regular file"), std::string::npos)
        << words[0] << ": " << result.err;
  };
  ASSERT_EQ(run({"simulate", "--net", path_, "--t-grad", "0.1", "--rate", "1Gbit/s", "--workers",
                 "2", "--logdir", logdir})
                .exit,
            0);
  name_pipe(logdir + "/config.json");
  expect_refused({"report", logdir});
  expect_refused({"simulate", "--from", logdir, "--rate", "1Gbit/s", "--workers", "2"});
  const std::string plan = folder_ / "plan.json";
  ASSERT_EQ(run({"plan", "--net", path_, "--t-grad", "0.1", "--rate", "1Gbit/s", "--machines", "2",
                 "--file", plan})
                .exit,
            0);
  name_pipe(plan);
  expect_refused({"launch", "--local", "2", "--plan", plan, "--", "--datadir", data_.path(),
                  "--batches", "1", "--logdir", folder_ / "planned"});
}

TEST_F(NetworkFileRuns, AnUnknownNameIsAnsweredWithTheKnownAndAHint) {
  const Result typo = run({"nets", "--net", "lennet"});
  EXPECT_EQ(typo.exit, 2);
  EXPECT_NE(typo.err.find("(did you mean lenet?); known: alexnet, "), std::string::npos);
  EXPECT_NE(typo.err.find("the path of a network's file, such as ./lennet"), std::string::npos);
  const Result missing =
      run({"estimate", "--net", "./lennet", "--t-grad", "0.1", "--rate", "1Gbit/s", "--type",
           "async", "--server", "central", "--workers", "2", "--batches", "4"});
  EXPECT_EQ(missing.exit, 2);
  EXPECT_NE(missing.err.find("./lennet: cannot be read: No such file"), std::string::npos);
  const Result folder = run({"nets", "./"});
  EXPECT_EQ(folder.exit, 2);
  EXPECT_EQ(std::count(folder.err.begin(), folder.err.end(), '\n'), 1) << folder.err;
}

}  // namespace
}  // namespace duplex::tools::testing
