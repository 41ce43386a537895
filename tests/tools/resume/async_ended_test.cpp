// Checkpoints of an asynchronous training in which a rank has trained its last step before others.
#include <chrono>
#include <filesystem>
#include <thread>

#include "core/error.h"
#include "tests/tools/training_runs.h"

namespace duplex::tools::testing {
namespace {

using Words = std::vector<std::string>;
namespace fs = std::filesystem;

class AsyncEnded : public TrainingRuns {
 protected:
  /// Returns the steps of the second of two workers that are in the newest checkpoint of rank 1;
  /// "": there is none.
  std::string steps_of_second() const {
    std::string newest;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(folder_ / "run/checkpoints", none)) {
      const fs::path file = entry.path() / "rank-1.safetensors";
      if (fs::exists(file, none)) newest = std::max(newest, file.string());
    }
    if (newest.empty()) return "";
    try {
      const std::string applied = SafetensorsFile(newest).metadata().at("applied");
      return applied.substr(applied.rfind(',') + 1);
    } catch (const Error&) {  // It has been removed meanwhile.
      return "";
    }
  }
};

/// Rank 1 is faster, and has ended when others call for more checkpoints: its part of those has its
/// running statistics, too.
TEST_F(AsyncEnded, ARankThatHasEndedHasAPartOfLaterCheckpoints) {
  write_two_nodes();
  const Words flags{"--net",
                    network_with_statistics(),
                    "--sync",
                    "none",
                    "--batches",
                    "100",
                    "--checkpoint-every",
                    "5",
                    "--nodefile",
                    folder_ / "nodes",
                    "--job",
                    "statistics",
                    "--timeout",
                    "20"};
  const auto start_rank = [&](int rank, const Words& more) {
    return Process(
        arguments("dist", "run", 16, plus(plus(flags, {"--index", std::to_string(rank)}), more)));
  };
  {
    const Process slow = start_rank(0, {"--device", "reference"}), fast = start_rank(1, {});
    for (int i = 0; i < 4000 && steps_of_second() != "100"; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_EQ(steps_of_second(), "100");
  }  // Both are killed.
  Process first = start_rank(0, {"--resume"}), second = start_rank(1, {"--resume"});
  for (Process* rank : {&first, &second}) {
    const Result result = rank->wait();
    EXPECT_EQ(result.exit, 0) << result.err;
  }
  EXPECT_EQ(steps_of_second(), "100");
}

}  // namespace
}  // namespace duplex::tools::testing
