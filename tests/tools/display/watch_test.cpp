// Tests duplex report --watch, with a run that grows row by row and with one that trains.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

#include "tests/tools/training_runs.h"

namespace duplex::tools::testing {
namespace {

namespace fs = std::filesystem;

const std::string refresh = "<meta http-equiv=\"refresh\" content=\"1\">";

class Watch : public TrainingRuns {
 protected:
  /// Waits until the page has a text, for 20 seconds at most. The page is whole all the time.
  void await(const std::string& text) const {
    std::string page;
    for (int i = 0; i < 2000; ++i) {
      page = fs::exists(page_) ? read_text(page_) : "";
      if (!page.empty()) {
        ASSERT_EQ(page.substr(0, 15), "<!DOCTYPE html>");
        ASSERT_EQ(page.substr(page.size() - 8), "</html>\n");
      }
      if (page.find(text) != std::string::npos) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ADD_FAILURE() << "the page never says " << text;
  }
  Process watch() const {
    return Process({"report", "--watch", "--interval", "100ms", folder_ / "run"});
  }

  const std::string page_ = folder_ / "run/report.html";
};

/// The files of a whole run come again piece by piece, a row in two halves.
TEST_F(Watch, FollowsARunThatGrows) {
  ASSERT_EQ(run(arguments("local", "whole", 8, {"--batches", "12", "--accuracy"})).exit, 0);
  fs::create_directory(folder_ / "run");
  write_text(folder_ / "run/config.json", "");  // A run that has not begun claims it so.
  Process watching = watch();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_FALSE(fs::exists(page_));
  fs::copy(folder_ / "whole/config.json", folder_ / "run/config.json",
           fs::copy_options::overwrite_existing);
  await("<td class=\"bad\">0 so far</td>");
  await(refresh);
  const std::string rows = read_text(folder_ / "whole/metrics.csv");
  std::size_t end = 0;
  for (int row = 0; row <= 3; ++row) end = rows.find('\n', end) + 1;
  write_text(folder_ / "run/metrics.csv", rows.substr(0, 10));  // The line of columns is cut, too.
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  write_text(folder_ / "run/metrics.csv", rows.substr(0, end + 9));
  await("<td class=\"bad\">3 so far</td>");
  await("run goes on: what follows of it is as far as it came");
  EXPECT_EQ(read_text(page_).find("interrupted"), std::string::npos);
  for (const char* file : {"metrics.csv", "accuracy.csv", "rank-0.json", "summary.json"}) {
    if (!fs::exists(folder_ / "whole/" + file)) continue;
    fs::copy(folder_ / "whole/" + file, folder_ / "run/" + file,
             fs::copy_options::overwrite_existing);
  }
  const Result result = watching.wait();
  EXPECT_EQ(result.exit, 0) << result.err;
  EXPECT_EQ(result.out, page_ + "\n");
  EXPECT_NE(result.err.find("waits for the run to begin"), std::string::npos) << result.err;
  const std::string page = read_text(page_);
  EXPECT_EQ(page.find("http-equiv"), std::string::npos);
  EXPECT_EQ(page.find("so far"), std::string::npos);
  EXPECT_NE(page.find(">12</td>"), std::string::npos);
}

/// It ends with the training that it watches, and changes nothing of it.
TEST_F(Watch, EndsWithTheTraining) {
  const std::vector<std::string> training =
      arguments("local", "run", 8, {"--batches", "600", "--accuracy"});
  fs::create_directory(folder_ / "run");
  Process watching = watch();
  const Result trained = run(training);
  EXPECT_EQ(trained.exit, 0) << trained.err;
  const Result result = watching.wait();
  EXPECT_EQ(result.exit, 0) << result.err;
  EXPECT_EQ(read_text(page_).find("http-equiv"), std::string::npos);
  EXPECT_NE(read_text(page_).find(">600</td>"), std::string::npos);
}

/// Ctrl-C leaves a page that does not load itself any more.
TEST_F(Watch, CtrlCLeavesAPageThatRests) {
  ASSERT_EQ(run(arguments("local", "run", 8, {"--batches", "3"})).exit, 0);
  fs::remove(folder_ / "run/summary.json");
  Process watching = watch();
  await(refresh);
  watching.kill(SIGINT);
  EXPECT_EQ(watching.wait().exit, 130);
  EXPECT_EQ(read_text(page_).find("http-equiv"), std::string::npos);
  EXPECT_NE(read_text(page_).find("3, interrupted"), std::string::npos);
}

TEST_F(Watch, RefusesWhatCannotBeWatched) {
  ASSERT_EQ(run(arguments("local", "run", 8, {"--batches", "3"})).exit, 0);
  const auto refuses = [&](std::vector<std::string> words, int exit, const std::string& why) {
    words.insert(words.begin(), {"report", "--watch"});
    const Result result = run(words);
    EXPECT_EQ(result.exit, exit) << result.err;
    EXPECT_NE(result.err.find(why), std::string::npos) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  };
  refuses({folder_ / "nowhere"}, 1, "there is no run directory " + folder_ / "nowhere");
  refuses({folder_ / "run", "--output", folder_ / "no/page.html"}, 1, "No such file or directory");
  refuses({folder_ / "run", "--output", "/dev/null"}, 2, "/dev/null is no regular file");
  refuses({folder_ / "run", "--interval", "0"}, 2, "--interval");
  refuses({folder_ / "run", "--interval", "soon"}, 2, "--interval");
  EXPECT_EQ(run({"report", folder_ / "run", "--interval", "2"}).exit, 2);
  write_text(folder_ / "run/config.json", "{\"vers");
  refuses({folder_ / "run"}, 1, "config.json");
}

}  // namespace
}  // namespace duplex::tools::testing
