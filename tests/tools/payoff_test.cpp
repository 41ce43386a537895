#include "tools/prediction/payoff.h"

#include <gtest/gtest.h>

namespace duplex::tools::testing {
namespace {

TEST(Payoff, SaysWhetherItPaidAndWhyNot) {
  EXPECT_EQ(text_of({"central", "alone", 1.43, 1.0, 0.6, 1.1}),
            "Paid: central is 1.43 times as fast as alone.\n");
  // Two workers that compute 39% of the time, as fast as alone.
  EXPECT_EQ(text_of({"central", "alone", 0.78, 1.0, 0.39, 1.0}),
            "Did not pay: central comes to 0.78 times alone, because its workers compute during "
            "39% of a step and exchange in the rest.\n");
  EXPECT_EQ(text_of({"central", "alone", 0.9, 1.0, 0.9, 2.0}),
            "Did not pay: central comes to 0.90 times alone, because its workers compute 2.00 "
            "times as long as one machine would.\n");
}

}  // namespace
}  // namespace duplex::tools::testing
