// Right and wrong solutions of exercises 5, 7 and 8, whose functions are equations.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "course/05_transfer/check.h"
#include "course/07_shares/check.h"
#include "course/08_schedules/check.h"
#include "tests/course/checked.h"
#include "tools/prediction/equations.h"

namespace duplex::course {
namespace {

using test::expect_has;
using test::expect_right;
using test::expect_wrong;

// ---- 5

double right_rate(double bits, double mtu) {
  return bits * (mtu - 52) / (mtu + 38);
}
double right_transfer(double parameters, double bits, double mtu) {
  return 32 * parameters / right_rate(bits, mtu);
}

TEST(CourseTransfer, PayloadOverRateIsRight) {
  expect_right(transfer_exercise(right_rate, right_transfer));
}

TEST(CourseTransfer, StubsAreNotWritten) {
  expect_wrong(transfer_exercise(exercise::payload_rate, exercise::transfer_seconds), "payload",
               "payload_rate() is not written yet");
  expect_wrong(transfer_exercise(right_rate, exercise::transfer_seconds), "a million",
               "transfer_seconds() is not written yet");
}

TEST(CourseTransfer, HeadersCount) {
  const auto all = [](double bits, double) { return bits; };
  expect_wrong(transfer_exercise(all, right_transfer), "the payload of Gigabit",
               "payload_rate() returned 1000000000, expected 9.41482e+08");
  const auto no_gap = [](double bits, double mtu) { return bits * (mtu - 52) / (mtu + 14); };
  expect_wrong(transfer_exercise(no_gap, right_transfer), "the payload of Gigabit", "expected");
}

TEST(CourseTransfer, APercentageHoldsForOnePacketAlone) {
  const auto fixed = [](double bits, double) { return bits * 1448 / 1538; };
  expect_wrong(transfer_exercise(fixed, right_transfer), "9000 bytes", "payload_rate() returned");
}

TEST(CourseTransfer, BytesAreNotBits) {
  const auto bytes = [](double parameters, double bits, double mtu) {
    return 4 * parameters / right_rate(bits, mtu);
  };
  expect_wrong(transfer_exercise(right_rate, bytes), "a million parameters", "transfer_seconds()");
  const auto wire = [](double parameters, double bits, double) { return 32 * parameters / bits; };
  expect_wrong(transfer_exercise(right_rate, wire), "a million parameters", "transfer_seconds()");
}

// ---- 7

double right_step(std::int32_t machines, const double* share, double comm, double grad) {
  double most = 0.0;
  for (int k = 0; k < machines; ++k)
    most = std::max({most, (machines - 1) * share[k], 1.0 - share[k]});
  return grad + 2 * comm * most;
}

TEST(CourseShares, TheProductsOwnIsRight) {
  expect_right(shares_exercise(products_deal, right_step));
}

TEST(CourseShares, StubsAreNotWritten) {
  expect_wrong(shares_exercise(exercise::deal, exercise::step_seconds), "alike",
               "deal() is not written yet");
  expect_wrong(shares_exercise(products_deal, exercise::step_seconds), "equal shares",
               "step_seconds() is not written yet");
}

TEST(CourseShares, TensorsAreNotDealtInTurns) {
  const auto turns = [](std::int32_t tensors, const std::int32_t*, std::int32_t machines,
                        std::int32_t* owner) {
    for (int i = 0; i < tensors; ++i) owner[i] = i % machines;
  };
  expect_wrong(shares_exercise(turns, right_step), "a large tensor first",
               "owner[2] is 0, expected 1");
}

TEST(CourseShares, TensorsAreCountedByElements) {
  const auto by_number = [](std::int32_t tensors, const std::int32_t*, std::int32_t machines,
                            std::int32_t* owner) {
    std::vector<int> held(static_cast<std::size_t>(machines));
    for (int i = 0; i < tensors; ++i) {
      const auto least = std::min_element(held.begin(), held.end());
      owner[i] = static_cast<std::int32_t>(least - held.begin());
      ++*least;
    }
  };
  expect_wrong(shares_exercise(by_number, right_step), "a large tensor first", "owner[2]");
}

TEST(CourseShares, AmongEqualsTheFirstMachineTakes) {
  const auto last = [](std::int32_t tensors, const std::int32_t* elements, std::int32_t machines,
                       std::int32_t* owner) {
    std::vector<int> held(static_cast<std::size_t>(machines));
    for (int i = 0; i < tensors; ++i) {
      const auto least = std::min_element(held.rbegin(), held.rend());
      owner[i] = static_cast<std::int32_t>(held.rend() - least - 1);
      *least += elements[i];
    }
  };
  expect_wrong(shares_exercise(last, right_step), "alike", "owner[0] is 1, expected 0");
}

TEST(CourseShares, TheLargestShareSetsThePace) {
  const auto mean = [](std::int32_t machines, const double*, double comm, double grad) {
    return grad + 2 * comm * (machines - 1) / machines;
  };
  expect_wrong(shares_exercise(products_deal, mean), "six tenths", "step_seconds() returned");
  const auto once = [](std::int32_t machines, const double* share, double comm, double grad) {
    return grad + (right_step(machines, share, comm, 0.0) / 2);
  };
  expect_wrong(shares_exercise(products_deal, once), "equal shares of two",
               "returned 0.75, expected 1.25");
}

// ---- 8

double right_best(int n, double c, double g) {
  return tools::sync_central_best({c, g}, n);
}
double right_worst(int n, double c, double g) {
  return tools::sync_central_worst({c, g}, n);
}
double right_distributed(int n, double c, double g) {
  return tools::sync_distributed({c, g}, n);
}
int right_peak(int most, double c, double g) {
  int best = 1;
  for (int n = 2; n <= most; ++n)
    if (right_worst(n, c, g / n) < right_worst(best, c, g / best)) best = n;
  return best;
}
const Schedules right{right_best, right_worst, right_distributed, right_peak};

TEST(CourseSchedules, TheProductsEquationsAreRight) {
  expect_right(schedules_exercise(right));
}

TEST(CourseSchedules, StubsAreNotWritten) {
  expect_wrong(schedules_exercise({exercise::central_best, exercise::central_worst,
                                   exercise::distributed, exercise::peak_of_split}),
               "(4.4)", "central_best() is not written yet");
}

TEST(CourseSchedules, EachScheduleIsTold) {
  Schedules wrong = right;
  wrong.central_best = right_worst;
  expect_wrong(schedules_exercise(wrong), "(4.4)", "for 2 workers, comm 1, grad 0");
  wrong = right;
  wrong.central_worst = right_best;
  expect_wrong(schedules_exercise(wrong), "(4.7)", "central_worst() returned 3, expected 4");
  wrong = right;
  wrong.distributed = [](int n, double c, double g) { return 2 * c / n + g; };
  expect_wrong(schedules_exercise(wrong), "(4.12)",
               "distributed() returned 2, expected 0, for 1 workers");
}

TEST(CourseSchedules, SplitDividesTheGradient) {
  Schedules wrong = right;
  wrong.peak_of_split = [](int, double, double) { return 1; };
  expect_wrong(schedules_exercise(wrong), "SqueezeNet", "peak_of_split() returned 1, expected 3");
  // The worst schedule's derivative is 0 there, and the nearest whole number is not always best.
  wrong.peak_of_split = [](int, double c, double g) {
    return static_cast<int>(std::lround(std::sqrt(g / (2 * c))));
  };
  expect_wrong(schedules_exercise(wrong), "beyond the most workers", "returned 3, expected 2");
}

// ---- What they measure

TEST(CourseMeasurements, AgreeWithTheEquations) {
  const Exercise shares = shares_exercise(products_deal, right_step);
  const double even = shares.figures[0].measure(), tensors = shares.figures[1].measure();
  const double quarters[] = {0.25, 0.25, 0.25, 0.25};
  EXPECT_NEAR(even, right_step(4, quarters, 5.153, 0.719), 0.01 * even);
  // The first linear layer of VGG16E has 102,764,544 of its 143,667,240 parameters.
  const double largest[] = {102764544 / 143667240.0};
  EXPECT_NEAR(tensors, 0.719 + 2 * 5.153 * 3 * largest[0], 0.05 * tensors);
  const Exercise schedules = schedules_exercise(right);
  EXPECT_EQ(schedules.figures[0].measure(), 3.0);
  const double central = schedules.figures[1].measure(),
               distributed = schedules.figures[2].measure();
  EXPECT_NEAR(central, right_worst(4, 0.033, 0.758 / 4), 0.02 * central);
  EXPECT_NEAR(distributed, right_distributed(4, 0.033, 0.758 / 4), 0.1 * distributed);
  const double seconds = transfer_exercise(right_rate, right_transfer).figures[2].measure();
  EXPECT_GT(seconds, 0.9 * 431080 * 32 / 100e6);
}

}  // namespace
}  // namespace duplex::course
