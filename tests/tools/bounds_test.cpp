// Batches, classes and inputs have bounds, from flags and from files, so that no size of them
// wraps.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "layers/model.h"
#include "layers/plan/memory_plan.h"
#include "models/registry.h"
#include "tests/temporary_folder.h"
#include "tests/tools/program.h"
#include "tools/memory/fitting.h"
#include "tools/partition/tiles.h"

namespace duplex::tools::testing {
namespace {

void expect_usage_error(const std::vector<std::string>& words, const std::string& part) {
  const Result result = run(words);
  EXPECT_EQ(result.exit, 2) << words[0] << " " << result.err;
  EXPECT_NE(result.err.find(part), std::string::npos) << words[0] << " " << result.err;
  EXPECT_EQ(result.out, "");
}

TEST(Bounds, FlagsOfBatchesAndClassesHaveThem) {
  for (const std::string batch : {"16777217", "72057594037927936", "4611686018427387904"}) {
    const std::string refusal = "from 1 to 16777216";
    expect_usage_error({"nets", "lenet", "--memory", "--batch", batch}, refusal);
    expect_usage_error({"bench", "--net", "lenet", "--batch", batch}, refusal);
    expect_usage_error({"local", "--net", "lenet", "--datadir", "d", "--batch", batch}, refusal);
    expect_usage_error({"simulate", "--net", "lenet", "--batch", batch}, refusal);
    expect_usage_error({"probe", "--nodefile", "n", "--index", "0", "--batch", batch}, refusal);
  }
  for (const char* classes : {"1048577", "4611686018427387904", "9223372036854775807"})
    expect_usage_error({"nets", "lenet", "--memory", "--classes", classes}, "from 1 to 1048576");
  EXPECT_EQ(run({"nets", "lenet", "--classes", "1048576"}).exit, 0);
  EXPECT_EQ(run({"nets", "lenet", "--memory", "--batch", "16777216"}).exit, 0);
}

TEST(Bounds, FilesHaveThemToo) {
  const TemporaryFolder folder;
  const std::string plan = folder / "plan.json";
  ASSERT_EQ(run({"plan", "--net", "lenet", "--t-grad", "1", "--rate", "1Gbit/s", "--machines", "2",
                 "--file", plan})
                .exit,
            0);
  const nlohmann::json sound = nlohmann::json::parse(read_text(plan));
  const std::string nodes = folder / "nodes";
  write_text(nodes, nodes_here(2));
  const auto trained = [&](const char* field, std::int64_t value) {
    nlohmann::json damaged = sound;
    damaged[field] = value;
    write_text(plan, damaged.dump());
    return run({"dist", "--plan", plan, "--device", "replay:0.001", "--batches", "1", "--nodefile",
                nodes, "--index", "0", "--logdir", folder / "run"});
  };
  const Result batch = trained("batch", std::int64_t{1} << 62);
  EXPECT_EQ(batch.exit, 1);
  EXPECT_NE(batch.err.find("batch is no number of images"), std::string::npos) << batch.err;
  const Result classes = trained("classes", std::int64_t{1} << 62);
  EXPECT_EQ(classes.exit, 2);
  EXPECT_NE(classes.err.find("from 1 to 1048576 classes"), std::string::npos) << classes.err;
}

/// To open a pipe waits for somebody who writes to it.
TEST(Bounds, APlanNamesNoPipe) {
  const TemporaryFolder folder;
  const std::string plan = folder / "plan.json", pipe = folder / "pipe", nodes = folder / "nodes";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  write_text(nodes, nodes_here(2));
  ASSERT_EQ(run({"plan", "--net", "lenet", "--t-grad", "1", "--rate", "1Gbit/s", "--machines", "2",
                 "--device", "replay:" + pipe, "--file", plan})
                .exit,
            0);
  const Result result = run({"dist", "--plan", plan, "--batches", "1", "--nodefile", nodes,
                             "--index", "0", "--logdir", folder / "run"});
  EXPECT_EQ(result.exit, 1);
  EXPECT_NE(result.err.find("it is no regular file"), std::string::npos) << result.err;
}

TEST(Bounds, NetworksAreBuiltWithin) {
  for (const std::int64_t value : {std::int64_t{-1}, (std::int64_t{1} << 20) + 1}) {
    models::ModelOptions classes, input, channels;
    classes.classes = input.input = channels.channels = value;
    for (const models::ModelOptions& options : {classes, input, channels})
      EXPECT_THROW(models::build("lenet", options), Error) << value;
  }
}

TEST(Bounds, AnArenaIsCounted) {
  const std::size_t block = std::size_t{1} << 61;
  EXPECT_EQ(plan_memory({{block, 0, 1}, {block, 1, 2}}).bytes, 2 * block);
  EXPECT_EQ(plan_memory({{block, 0, 1}, {block, 2, 3}, {block, 4, 5}}).bytes, block);
  // Without a bound nine of them would come to as much as one.
  EXPECT_THROW(plan_memory(std::vector<Lifetime>(9, {block, 0, 1})), Error);
}

TEST(Bounds, TheLargestBatchIsOneThatCanBeGiven) {
  const auto needs = [](std::int64_t batch) { return static_cast<std::size_t>(batch); };
  EXPECT_EQ(largest_batch(std::numeric_limits<std::size_t>::max(), 32, needs), most_images);
}

TEST(Bounds, AStepThatIsCutIsCounted) {
  models::ModelOptions options;
  options.input = 4096;
  const Model model = models::build("vgg16e", options);
  TileSpec spec;
  spec.batch = 1024;
  spec.shards = spec.blocks = 2;
  const Tiles tiles(model, spec);
  for (std::size_t tile = 0; tile < tiles.count(); ++tile) EXPECT_GE(tiles.work(tile), 0);
  spec.batch = most_images;
  EXPECT_THROW(Tiles(model, spec), Error);
}

}  // namespace
}  // namespace duplex::tools::testing
