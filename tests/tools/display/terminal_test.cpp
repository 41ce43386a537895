// Tests what local, dist and launch show on a terminal, and what they show elsewhere.
#include "tests/tools/display/terminal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "tests/tools/training_runs.h"

namespace duplex::tools::testing {
namespace {

class Terminal : public TrainingRuns {
 protected:
  /// Says what is wrong with a screen that shows one bar and rewrites it.
  static void expect_one_bar(const Screen& screen, const std::string& steps, std::size_t columns) {
    for (const std::string& line : screen.rewritten()) EXPECT_LT(line.size(), columns) << line;
    std::size_t bars = 0;
    for (const std::string& line : screen.lines()) bars += line.rfind("[=", 0) == 0 ? 1U : 0U;
    EXPECT_EQ(bars, 1U);
    std::size_t rewritten = 0;
    for (const std::string& line : screen.rewritten())
      rewritten += line.find("/" + steps) != std::string::npos ? 1U : 0U;
    // The last step is shown, and once more as the line ends.
    EXPECT_GE(rewritten, 2U);
  }
  static bool has(const Screen& screen, const std::string& text) {
    return std::any_of(screen.lines().begin(), screen.lines().end(), [&](const std::string& line) {
      return line.find(text) != std::string::npos;
    });
  }
  static std::string text(const Screen& screen) {
    std::string all;
    for (const std::string& line : screen.lines()) all += line + "\n";
    return all;
  }
};

TEST_F(Terminal, LocalRewritesOneLineAndDrawsCurves) {
  for (const std::size_t columns : {80U, 50U}) {
    const TerminalRun run = run_on_terminal(
        arguments("local", "run", 8, {"--batches", "400", "--test-every", "10"}), columns);
    Screen screen;
    screen.feed(run.bytes);
    EXPECT_EQ(run.exit, 0) << text(screen);
    expect_one_bar(screen, "400", columns);
    EXPECT_TRUE(has(screen, " 400/400 ")) << text(screen);
    EXPECT_TRUE(has(screen, "400 steps")) << text(screen);
    EXPECT_TRUE(has(screen, "top-1 of the test images")) << text(screen);
    // Both charts have a lower edge. The locale is C, so all is ASCII.
    EXPECT_TRUE(std::all_of(run.bytes.begin(), run.bytes.end(),
                            [](char c) { return static_cast<unsigned char>(c) < 0x80; }));
    if (columns == 80) {
      EXPECT_TRUE(has(screen, "loss 0.")) << text(screen);
      EXPECT_TRUE(has(screen, " top-1 ")) << text(screen);
      EXPECT_TRUE(has(screen, " images/s ")) << text(screen);
      EXPECT_TRUE(has(screen, "0:00 left ")) << text(screen);
      EXPECT_TRUE(has(screen, " MiB")) << text(screen);
    }
  }
}

TEST_F(Terminal, CurvesAreBrailleWhereTheLocaleHasIt) {
  const TerminalRun run =
      run_on_terminal(arguments("local", "run", 8, {"--batches", "40"}), 80, "C.UTF-8");
  EXPECT_EQ(run.exit, 0) << run.bytes;
  EXPECT_NE(run.bytes.find("\xe2\xa1"), std::string::npos) << run.bytes;
}

/// The first worker's bar goes through launch, below the lines of all ranks.
TEST_F(Terminal, LaunchPassesTheBarOn) {
  const TerminalRun run =
      run_on_terminal({"launch", "--local", "2", "--", "--net", "lenet", "--device", "replay:0.02",
                       "--batches", "100", "--logdir", folder_ / "launched", "--timeout", "20"},
                      80);
  Screen screen;
  screen.feed(run.bytes);
  EXPECT_EQ(run.exit, 0) << text(screen);
  // Lines of ranks may be longer than the terminal; those that are rewritten are not.
  for (const std::string& line : screen.rewritten()) EXPECT_LT(line.size(), 80U) << line;
  std::size_t bars = 0;
  for (const std::string& line : screen.lines())
    bars += line.rfind("[=", 0) == 0 || line.rfind("[>", 0) == 0 ? 1U : 0U;
  EXPECT_EQ(bars, 1U) << text(screen);
  EXPECT_GT(screen.rewritten().size(), 2U);
  EXPECT_TRUE(has(screen, "[0] run      ")) << text(screen);
}

/// launch puts a rank's number in front of its lines, so its curve is narrower.
TEST_F(Terminal, LaunchPassesTheCurveOn) {
  const TerminalRun run = run_on_terminal(
      {"launch", "--local", "2", "--", "--net", "lenet", "--datadir", data_.path(), "--batch", "8",
       "--threads", "1", "--batches", "40", "--logdir", folder_ / "launched", "--timeout", "20"},
      70, "C.UTF-8");
  Screen screen;
  screen.feed(run.bytes);
  EXPECT_EQ(run.exit, 0) << text(screen);
  std::size_t curve = 0;
  for (const std::string& line : screen.lines()) {
    const bool drawn = line.find(" +") != std::string::npos || line.find(" |") != std::string::npos;
    if (line.rfind("[0]   ", 0) != 0 || !drawn) continue;
    ++curve;
    EXPECT_LT(columns_of(line), 70U) << line;
  }
  EXPECT_EQ(curve, 10U) << text(screen);  // Nine rows and the lower edge.
}

/// Without a terminal nothing is rewritten.
TEST_F(Terminal, PlainOutputHasNoBar) {
  const Result result = run(arguments("local", "run", 8, {"--batches", "40"}));
  EXPECT_EQ(result.exit, 0) << result.err;
  for (const std::string& text : {result.out, result.err}) {
    EXPECT_EQ(text.find('\r'), std::string::npos);
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
    EXPECT_EQ(text.find("top-1"), std::string::npos);
  }
}

TEST_F(Terminal, QuietSaysNothing) {
  const TerminalRun local = run_on_terminal(
      arguments("local", "quiet", 8, {"--batches", "40", "--accuracy", "--quiet"}), 80);
  EXPECT_EQ(local.exit, 0);
  EXPECT_EQ(local.bytes, "");
  EXPECT_TRUE(std::filesystem::exists(folder_ / "quiet/summary.json"));
  const std::vector<std::string> training{"--net",     "lenet", "--datadir", data_.path(),
                                          "--batches", "10",    "--batch",   "8",
                                          "--threads", "1"};
  int number = 0;
  for (const bool before : {true, false}) {
    const std::string directory = folder_ / ("launched" + std::to_string(++number));
    std::vector<std::string> words{"launch", "--local", "2"};
    if (before) words.emplace_back("--quiet");
    words = plus(plus(words, {"--"}), plus(training, {"--logdir", directory}));
    if (!before) words.emplace_back("--quiet");
    const TerminalRun launched = run_on_terminal(words, 80);
    EXPECT_EQ(launched.exit, 0);
    EXPECT_EQ(launched.bytes, "");
    EXPECT_TRUE(std::filesystem::exists(directory + "/rank-1.json"));
  }
  write_two_nodes();
  std::vector<Process> ranks;
  for (const char* rank : {"0", "1"})
    ranks.emplace_back(plus(plus({"dist"}, training),
                            {"--logdir", folder_ / "ranks", "--nodefile", folder_ / "nodes",
                             "--index", rank, "--quiet", "--timeout", "20"}));
  for (Process& rank : ranks) {
    const Result result = rank.wait();
    EXPECT_EQ(result.exit, 0) << result.err;
    EXPECT_EQ(result.out + result.err, "");
  }
}

TEST_F(Terminal, QuietSaysWhatIsWrong) {
  const Result alone =
      run({"local", "--net", "lenet", "--datadir", folder_ / "nowhere", "--quiet"});
  EXPECT_EQ(alone.exit, 1);
  EXPECT_NE(alone.err.find("nowhere"), std::string::npos) << alone.err;
  const Result ranks = run({"launch", "--local", "2", "--quiet", "--", "--net", "lenet",
                            "--datadir", folder_ / "nowhere", "--logdir", folder_ / "failed"});
  EXPECT_EQ(ranks.exit, 1);
  EXPECT_NE(ranks.err.find("nowhere"), std::string::npos) << ranks.err;
}

}  // namespace
}  // namespace duplex::tools::testing
