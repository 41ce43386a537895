// Tests plans for machines with several slots: by figures, as measured, and followed by a training.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/device.h"
#include "tests/tools/training_runs.h"
#include "tools/plan/machines_file.h"
#include "tools/plan/plan_file.h"

namespace duplex::tools::testing {
namespace {

using Words = std::vector<std::string>;

class SlotsPlan : public TrainingRuns {};

/// With a fast link, three machines of two slots are three times as fast as one of them.
TEST_F(SlotsPlan, ComparesWithAMachineOnAllOfItsSlots) {
  const auto plan = [](const Words& more) {
    const Result result = run(plus({"plan", "--net", "lenet", "--t-grad", "0.1", "--rate",
                                    "100Gbit/s", "--machines", "3", "--output", "json"},
                                   more));
    EXPECT_EQ(result.exit, 0) << result.err;
    return nlohmann::json::parse(result.out);
  };
  const nlohmann::json one = plan({}), two = plan({"--slots", "2"});
  const auto way = [](const nlohmann::json& all, const std::string& name) {
    const auto& ways = all.at("ways");
    const auto found = std::find_if(ways.begin(), ways.end(), [&](const nlohmann::json& each) {
      return each.at("way") == name;
    });
    return found == ways.end() ? nlohmann::json() : *found;
  };
  const nlohmann::json single = way(one, "join-distributed"), both = way(two, "join-distributed");
  ASSERT_FALSE(single.is_null() || both.is_null());
  EXPECT_NEAR(both.at("speedup").get<double>(), 3.0, 0.1);
  EXPECT_NEAR(both.at("image_s").get<double>(), single.at("image_s").get<double>() / 2.0,
              0.05 * single.at("image_s").get<double>());
  EXPECT_TRUE(way(two, "none-distributed").is_null());
  EXPECT_FALSE(way(one, "none-distributed").is_null());
}

/// Measures two machines, of which one has two slots, and trains as the plan says.
TEST_F(SlotsPlan, IsMeasuredAndFollowed) {
  if (usable_cores() < 2)
    GTEST_SKIP() << "a slot needs a core of its own, and this process may use one core only";
  write_text(folder_ / "nodes", nodes_here(2, {2}));
  const std::string path = folder_ / "plan.json";
  const Result planned =
      run({"plan", "--net", "lenet", "--batch", "6", "--threads", "1", "--seconds", "0.2",
           "--nodefile", folder_ / "nodes", "--logdir", folder_ / "measured", "--file", path,
           "--way", "join-distributed", "--timeout", "20"});
  ASSERT_EQ(planned.exit, 0) << planned.err;
  EXPECT_NE(planned.err.find("on each of 2 slots"), std::string::npos) << planned.err;
  const MachinesFile file = read_machines(folder_ / "measured/machines.json");
  ASSERT_EQ(file.machines.size(), 2U);
  EXPECT_EQ(file.machines[0].slots, 2);
  EXPECT_FALSE(file.machines[1].slots);
  EXPECT_EQ(read_plan(path).parallel.slots, (std::vector<int>{2, 1}));
  const auto train = [&](const std::string& nodes, const Words& more) {
    return run(plus({"launch", "--plan", path, "--nodefile", folder_ / nodes, "--", "--datadir",
                     data_.path(), "--threads", "1", "--batches", "3", "--timeout", "20"},
                    more));
  };
  const Result trained = train("nodes", {"--logdir", folder_ / "run"});
  ASSERT_EQ(trained.exit, 0) << trained.err;
  const auto config = nlohmann::json::parse(read_text(folder_ / "run/config.json"));
  EXPECT_EQ(config.at("slots"), (std::vector<int>{2, 1}));
  // Others are not what the plan is for.
  const std::string nodes = read_text(folder_ / "nodes");
  std::string without = nodes;
  without.erase(without.find(" slots=2"), std::string(" slots=2").size());
  write_text(folder_ / "singles", without);
  const Result other = train("singles", {"--logdir", folder_ / "other"});
  EXPECT_EQ(other.exit, 2);
  EXPECT_NE(other.err.find("is for workers with other slots"), std::string::npos) << other.err;
  const Result again = run({"plan", "--measured", folder_ / "measured/machines.json", "--nodefile",
                            folder_ / "singles"});
  EXPECT_EQ(again.exit, 2);
  EXPECT_NE(again.err.find("was measured with 2 slots"), std::string::npos) << again.err;
}

/// The plan's nodefile has the slots that --slots gives.
TEST_F(SlotsPlan, WritesTheNodefileThatItIsFor) {
  write_text(folder_ / "nodes", "127.0.0.1:7001\n127.0.0.2:7001\n");
  const std::string path = folder_ / "plan.json";
  const Words words{
      "plan",    "--net", "lenet",      "--t-grad",        "0.1",    "--rate", "1Gbit/s",
      "--slots", "2",     "--nodefile", folder_ / "nodes", "--file", path};
  const Result result = run(words);
  ASSERT_EQ(result.exit, 0) << result.err;
  EXPECT_EQ(read_text(path + ".nodes"), "127.0.0.1:7001 slots=2\n127.0.0.2:7001 slots=2\n");
  EXPECT_NE(result.out.find("--nodefile " + path + ".nodes"), std::string::npos) << result.out;
  write_text(folder_ / "nodes", "127.0.0.1\n127.0.0.1\n");
  const Result twice = run(words);
  EXPECT_EQ(twice.exit, 2);
  EXPECT_NE(twice.err.find("is in the nodefile several times"), std::string::npos) << twice.err;
  write_text(folder_ / "nodes", "127.0.0.1 slots=2\n127.0.0.2\n");
  EXPECT_NE(run(words).err.find("say the same"), std::string::npos);
}

}  // namespace
}  // namespace duplex::tools::testing
