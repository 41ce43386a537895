// Which steps of a worker are in a chunk.
#include "net/store/applied_steps.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace duplex::net {
namespace {

TEST(AppliedSteps, LaterOnesAreTakenInWhenTheirTurnComes) {
  AppliedSteps steps(3);
  for (const std::uint64_t step : {5U, 6U, 4U, 8U}) steps.add(step);
  EXPECT_EQ(steps.first_missing(), 3U);
  EXPECT_EQ(steps.text(), "3+4+5+6+8");
  steps.add(3);
  EXPECT_EQ(steps.first_missing(), 7U);
  EXPECT_EQ(steps.count(), 8U);
  EXPECT_EQ(steps.text(), "7+8");
  EXPECT_TRUE(steps.has(0) && steps.has(6) && !steps.has(7) && steps.has(8) && !steps.has(9));
  steps.add(2);
  EXPECT_EQ(steps.count(), 8U) << "it was there";
}

TEST(AppliedSteps, MissingIsWhatNotAllHave) {
  const auto missing = [](const std::vector<AppliedSteps>& sets, const StepRange& steps) {
    std::string text;
    for (const StepRange& range : missing_of(sets, steps))
      text += std::to_string(range.first) + "-" + std::to_string(range.end) + " ";
    return text;
  };
  const AppliedSteps a = AppliedSteps::parse("4+6+8+9"), b = AppliedSteps::parse("7+9"),
                     c = AppliedSteps::parse("12");
  EXPECT_EQ(missing({a, b, c}, {0, 20}), "4-6 7-9 10-20 ");
  EXPECT_EQ(missing({c, b, a}, {5, 9}), "5-6 7-9 ");
  EXPECT_EQ(missing({a, b, c}, {0, 4}), "");
  EXPECT_EQ(missing({c}, {12, 12}), "");
  EXPECT_EQ(missing({AppliedSteps()}, {0, 3}), "0-3 ");
}

TEST(AppliedSteps, ATextIsReadAgain) {
  for (const char* text : {"0", "12", "12+14+17"})
    EXPECT_EQ(AppliedSteps::parse(text).text(), text);
  EXPECT_EQ(AppliedSteps::parse("12+12+13").text(), "14");
  for (const char* text : {"", "-1", "1+", "1++3", "+3", "1 3", "9999999999999999999"})
    EXPECT_THROW(AppliedSteps::parse(text), Error) << text;
}

}  // namespace
}  // namespace duplex::net
