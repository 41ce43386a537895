// Tests that a plan and what it is made of belong to one another: what computes, the machines'
// addresses, the shapes of a profile.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "tests/temporary_folder.h"
#include "tests/tools/program.h"
#include "tools/plan/machines_file.h"
#include "tools/plan/plan_file.h"

namespace duplex::tools::testing {
namespace {

using Words = std::vector<std::string>;

class PlanComputing : public ::testing::Test {
 protected:
  /// Plans with `more` flags, and writes `plan.json`.
  Result plan(const Words& more) const {
    return run(plus({"plan", "--net", "lenet", "--classes", "10", "--t-grad", "0.02", "--rate",
                     "1Gbit/s", "--batch", "6", "--machines", "2", "--file", file_},
                    more));
  }
  void refuses(const Words& more, const std::string& because) const {
    const Result result =
        run(plus({"dist", "--plan", file_, "--datadir", folder_.path(), "--nodefile",
                  folder_ / "nodes", "--index", "0", "--logdir", folder_ / "run"},
                 more));
    EXPECT_EQ(result.exit, 2) << result.err;
    EXPECT_NE(result.err.find(because), std::string::npos) << result.err;
  }

  TemporaryFolder folder_;
  std::string file_ = folder_ / "plan.json";
};

/// A run that followed it on something else would not be what was predicted.
TEST_F(PlanComputing, ThePlanSaysWhatComputes) {
  ASSERT_EQ(plan({"--device", "reference", "--precision", "float32", "--threads", "1"}).exit, 0);
  const PlanFile kept = read_plan(file_);
  EXPECT_EQ(kept.device, "reference");
  EXPECT_EQ(kept.precision, "float32");
  EXPECT_EQ(kept.threads, 1);
  EXPECT_FALSE(kept.layout);
  EXPECT_EQ(text_of(kept), read_text(file_));
  write_text(folder_ / "nodes", "127.0.0.1:1\n127.0.0.1:2\n");
  refuses({"--device", "onednn"}, "--device onednn contradicts the plan " + file_ +
                                      ", which has reference: leave the flag out");
  refuses({"--threads", "2"}, "--threads 2 contradicts the plan");
  refuses({"--precision", "bf16"}, "--precision bf16 contradicts the plan");

  ASSERT_EQ(plan({"--device", "auto"}).exit, 0);  // Every machine takes what it has.
  EXPECT_FALSE(read_plan(file_).device);
  ASSERT_EQ(plan({}).exit, 0);
  EXPECT_FALSE(read_plan(file_).precision);
  EXPECT_FALSE(read_plan(file_).threads);
  write_text(file_, [&] {
    PlanFile damaged = kept;
    damaged.threads = 0;
    return text_of(damaged);
  }());
  EXPECT_THROW(read_plan(file_), Error);
}

MachinesFile measured() {
  MachinesFile file;
  file.network = "lenet";
  for (const double machine : {0.0, 1.0, 2.0}) {
    MeasuredMachine each;
    each.address = "10.0.0." + std::to_string(static_cast<int>(machine)) + ":7117";
    each.grad = machine + 1.0;
    for (const double other : {0.0, 1.0, 2.0}) {
      each.out.push_back(machine == other ? 0.0 : 100.0 + 10.0 * machine + other);
      each.in.push_back(machine == other ? 0.0 : 200.0 + 10.0 * machine + other);
      each.round_trip.push_back(machine == other ? 0.0 : 300.0 + 10.0 * machine + other);
    }
    file.machines.push_back(each);
  }
  return file;
}

TEST(MeasuredMachines, AreFoundByTheirAddresses) {
  const MachinesFile some =
      machines_at(measured(), "machines.json", {"10.0.0.2:7117", "10.0.0.0:7117"});
  EXPECT_EQ(some.network, "lenet");
  ASSERT_EQ(some.machines.size(), 2U);
  EXPECT_EQ(some.machines[0].grad, 3.0);
  EXPECT_EQ(some.machines[1].grad, 1.0);
  EXPECT_EQ(some.machines[0].out, (std::vector<double>{0.0, 120.0}));
  EXPECT_EQ(some.machines[0].in, (std::vector<double>{0.0, 220.0}));
  EXPECT_EQ(some.machines[1].round_trip, (std::vector<double>{302.0, 0.0}));
  try {
    machines_at(measured(), "machines.json", {"10.0.0.2:7117", "10.0.0.9:7117"});
    ADD_FAILURE() << "a machine that was not measured is found";
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::usage);
    EXPECT_STREQ(error.what(),
                 "machines.json is of the machines 10.0.0.0:7117, 10.0.0.1:7117, 10.0.0.2:7117, "
                 "and not of 10.0.0.9:7117: measure again");
  }
}

TEST_F(PlanComputing, WhatIsMeasuredCannotBeGiven) {
  write_text(folder_ / "nodes", "127.0.0.1:1\n127.0.0.1:2\n");
  for (const auto& [flag, value] : {std::pair("--owner-rate", "1"), std::pair("--seal-rate", "1"),
                                    std::pair("--moving", "1:1"), std::pair("--cores", "2")}) {
    const Result result =
        run({"plan", "--net", "lenet", "--nodefile", folder_ / "nodes", flag, value});
    EXPECT_EQ(result.exit, 2) << result.err;
    EXPECT_NE(result.err.find("plan --nodefile measures what " + std::string(flag) + " would say"),
              std::string::npos)
        << result.err;
  }
}

TEST_F(PlanComputing, AComparisonWritesNothing) {
  const Result file = plan({"--why", "join-distributed", "join-central"});
  EXPECT_EQ(file.exit, 2);
  EXPECT_NE(file.err.find("--file excludes --why"), std::string::npos) << file.err;
}

/// Layers of these names have other shapes with another input.
TEST_F(PlanComputing, AProfileOfAnotherInputIsRefused) {
  const std::string profile = folder_ / "run/profile.json";
  std::filesystem::create_directories(folder_ / "data");
  write_squares(folder_ / "data", 96, 20);
  ASSERT_EQ(run({"local", "--net", "lenet", "--classes", "10", "--batch", "2", "--batches", "2",
                 "--device", "reference", "--profile", "--datadir", folder_ / "data", "--logdir",
                 folder_ / "run"})
                .exit,
            0);
  const Words words{"plan",    "--net", "lenet",      "--classes", "10",        "--rate", "1Gbit/s",
                    "--batch", "2",     "--machines", "2",         "--profile", profile};
  EXPECT_EQ(run(words).exit, 0);
  const Result other = run(plus(words, {"--input", "32"}));
  EXPECT_EQ(other.exit, 1);
  EXPECT_NE(other.err.find("profile " + profile + " is of a "), std::string::npos) << other.err;
  EXPECT_NE(other.err.find(" multiply-adds an image, not "), std::string::npos) << other.err;
}

}  // namespace
}  // namespace duplex::tools::testing
