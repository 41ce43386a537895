// Which steps of a run its ledger has.
#include "net/ledger/sampled_steps.h"

#include <gtest/gtest.h>

#include <map>

namespace duplex::net {
namespace {

using Rule = FrameSample::Rule;

TEST(SampledSteps, AreWhatWasAskedFor) {
  SampledSteps third({Rule::every, 3}, 0), none({Rule::none}, 0), all({Rule::every, 1}, 7);
  for (std::uint64_t step = 0; step < 100; ++step) {
    EXPECT_EQ(third.has(step), step % 3 == 0);
    EXPECT_FALSE(none.has(step));
    EXPECT_TRUE(all.has(step));
    for (SampledSteps* each : {&third, &none, &all}) {
      each->saw(step);
      EXPECT_FALSE(each->wrote(SampledSteps::most_bytes));
    }
  }
  EXPECT_FALSE(third.has_all());
  EXPECT_TRUE(all.has_all());
  EXPECT_EQ(third.kept().text, "every 3rd step");
  EXPECT_EQ(none.kept().text, "none");
  EXPECT_EQ(all.kept().text, "all");
  ASSERT_EQ(third.kept().stretches.size(), 1U);
  EXPECT_EQ(third.kept().stretches[0].every, 3U);
}

/// Two steps are always open, as in a synchronous run, and each writes a mebibyte in two halves.
TEST(SampledSteps, AreFewerAsTheFileGrows) {
  SampledSteps steps({}, 0);
  constexpr std::uint64_t half = 512 << 10;
  std::uint64_t bytes = 0;
  std::map<std::uint64_t, int> halves;
  const auto write = [&](std::uint64_t step) {
    steps.saw(step);
    if (!steps.has(step)) return;
    ++halves[step];
    bytes += half;
    steps.wrote(half);
  };
  for (std::uint64_t step = 0; step < 200; ++step) {
    write(step);
    if (step > 0) write(step - 1);
    if (step == 50) {
      EXPECT_EQ(steps.kept().text, "all");
    }
    if (step == 70) {
      EXPECT_EQ(steps.kept().text, "steps 0 to 64, then every 2nd");
      EXPECT_FALSE(steps.has_all());
    }
  }
  for (const auto& [step, count] : halves) EXPECT_EQ(count, step == 199 ? 1 : 2) << step;
  EXPECT_EQ(halves.count(60), 1U);
  EXPECT_EQ(halves.count(66), 1U);
  EXPECT_EQ(halves.count(67), 0U);
  const std::vector<SampledStretch> stretches = steps.kept().stretches;
  ASSERT_GE(stretches.size(), 4U);
  std::uint64_t every = 1, from = 0;
  for (const SampledStretch& stretch : stretches) {
    EXPECT_EQ(stretch.every, every);
    EXPECT_GE(stretch.from, from);
    every *= 2;
    from = stretch.from + 1;
  }
  EXPECT_NE(steps.kept().text.find("steps 0 to 64, then ever fewer, from step "), std::string::npos)
      << steps.kept().text;
}

/// The bound holds for any length of a run, and for any size of a step but for two of them.
TEST(SampledSteps, AreBoundedInBytes) {
  for (const std::uint64_t step_bytes :
       {std::uint64_t{900}, std::uint64_t{4600000}, std::uint64_t{100} << 20}) {
    SampledSteps steps({}, 0);
    std::uint64_t bytes = 0, kept = 0;
    for (std::uint64_t step = 0; step < 20000000; ++step) {
      steps.saw(step);
      if (!steps.has(step)) continue;
      ++kept;
      bytes += step_bytes;
      steps.wrote(step_bytes);
    }
    EXPECT_LE(bytes, SampledSteps::most_bytes + 2 * step_bytes) << step_bytes;
    EXPECT_GE(bytes, SampledSteps::whole_bytes) << step_bytes;
    EXPECT_GE(kept, 2U);
    EXPECT_LE(steps.kept().stretches.size(), SampledSteps::doublings + 2U);
  }
  EXPECT_EQ(SampledSteps::most_bytes, std::uint64_t{384} << 20);
}

TEST(SampledSteps, OfATrainingThatGoesOnAreThoseOfItsNumbers) {
  SampledSteps steps({Rule::every, 4}, 10);
  EXPECT_FALSE(steps.has(10));
  EXPECT_TRUE(steps.has(12));
  SampledSteps later({}, 1000);
  later.saw(1003);
  EXPECT_TRUE(later.wrote(SampledSteps::whole_bytes));
  EXPECT_EQ(later.kept().text, "steps 1000 to 1003, then every 2nd");
  EXPECT_TRUE(later.has(1003));
  EXPECT_FALSE(later.has(1005));
}

}  // namespace
}  // namespace duplex::net
