// Tests the verdicts on the thesis's statements: each is of the points that it is given, and turns
// with them.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "models/registry.h"
#include "tools/report/thesis/accuracy.h"
#include "tools/report/thesis/statements.h"
#include "tools/report/thesis/thesis_data.h"

namespace duplex::tools::reports {
namespace {

using net::ServerMode;
using net::Sync;

constexpr auto central = ServerMode::central, distributed = ServerMode::distributed;

class Statements : public ::testing::Test {
 protected:
  ThesisPoint& point(const std::string& figure, ServerMode server, int workers) {
    return thesis_.points[{figure, net::name_of(server), workers}];
  }
  void lab(const std::string& figure, ServerMode server, int workers, double speedup) {
    point(figure, server, workers).lab = LabResult{speedup, 0.1};
  }
  void simulated(const std::string& figure, ServerMode server, int workers, double speedup) {
    point(figure, server, workers).simulated = speedup;
  }
  /// Every point of every figure, on the lab, as `speedup(figure, server, workers)` says.
  template <class Speedup>
  void everywhere(Speedup speedup) {
    for (const ThesisFigure& figure : chapter_6())
      for (const ServerMode server : {central, distributed})
        for (int n = 1; n <= figure.most; ++n)
          lab(figure.number, server, n, speedup(figure, server, n));
  }
  /// As estimated: every claim on estimates holds then.
  void as_estimated() {
    everywhere([&](const ThesisFigure& figure, ServerMode server, int n) {
      return estimated(thesis_, figure, server, n);
    });
  }
  /// The verdict whose statement has these words.
  Verdict of(const std::string& words) const {
    for (const auto& some : {estimate_verdicts, speedup_verdicts})  // The latter simulate.
      for (const Verdict& verdict : some(thesis_))
        if (verdict.statement.find(words) != std::string::npos) return verdict;
    throw std::runtime_error("no statement '" + words + "'");
  }
  void expect(const std::string& words, decltype(Verdict::outcome) outcome,
              const std::string& found) const {
    const Verdict verdict = of(words);
    EXPECT_EQ(verdict.outcome, outcome) << words << ": " << verdict.found;
    EXPECT_NE(verdict.found.find(found), std::string::npos) << words << ": " << verdict.found;
  }
  Thesis thesis_;
};

TEST_F(Statements, AreOpenWithoutPoints) {
  const std::vector<Verdict> all = verdicts(thesis_);
  EXPECT_EQ(all.size(), 23U);
  for (const Verdict& verdict : all) {
    EXPECT_EQ(verdict.outcome, Verdict::open) << verdict.statement;
    EXPECT_EQ(verdict.found, "") << verdict.statement;
    EXPECT_NE(verdict.where, "") << verdict.statement;
  }
}

TEST_F(Statements, BelongToFigures) {
  const Verdict vgg = of("VGG16E, join and asynchronous");
  EXPECT_TRUE(vgg.is_of("6.8"));
  EXPECT_FALSE(vgg.is_of("6.4"));
  EXPECT_EQ(vgg.place(), "sections 6.3, 6.5 and 7.1, chapter 8; figures 6.1, 6.8");
  EXPECT_EQ(of("SqueezeNet: 6.5").place(), "section 7.1; figure 6.3");
  EXPECT_EQ(of("always named").place(), "chapter 8");
}

TEST_F(Statements, StatedSpeedupsAreConfirmedWithinATenth) {
  lab("6.3", distributed, 8, 7.14);
  expect("SqueezeNet: 6.5", Verdict::confirmed, "7.14 on the lab, ");
  lab("6.3", distributed, 8, 7.16);
  expect("SqueezeNet: 6.5", Verdict::refuted, "more: 7.16 on the lab, ");
  lab("6.4", distributed, 8, 1.8);
  expect("Resnet34: at most 2.1", Verdict::refuted, "less: 1.80 on the lab, ");
  simulated("6.9", distributed, 8, 4.0);
  expect("GoogLeNet: 3.9", Verdict::confirmed, "4.00 simulated, ");
}

/// 7.1 says split, where (4.12) gives 1.65; with join, 4 would fit. Each reading has a line.
TEST_F(Statements, GoogLeNets4HasBothReadings) {
  lab("6.2", distributed, 8, 4.1);
  expect("read as join", Verdict::confirmed, "4.10 on the lab");
  EXPECT_EQ(of("read as it stands").outcome, Verdict::open);
  for (int n = 1; n <= 8; ++n) {
    lab("6.5", central, n, 0.5);
    lab("6.5", distributed, n, n == 4 ? 1.4 : 1.2);
  }
  expect("read as it stands", Verdict::refuted, "less: 1.40 on the lab");
  expect("read as it stands", Verdict::refuted, "(distributed, N = 4), and (4.12) gives 1.65");
  lab("6.5", distributed, 6, 4.2);
  expect("read as it stands", Verdict::confirmed, "(distributed, N = 6)");
  lab("6.2", distributed, 8, 5.0);
  expect("read as join", Verdict::refuted, "more: 5.00 on the lab");
}

TEST_F(Statements, SidesAreThoseOfTwoWorkersOrMore) {
  const std::string never = "VGG16E, join and asynchronous: never faster";
  lab("6.1", distributed, 1, 1.2);  // That is one machine.
  EXPECT_EQ(of(never).outcome, Verdict::open);
  lab("6.1", central, 3, 0.9);
  expect(never, Verdict::confirmed, "at most 0.90 (figure 6.1, central, N = 3, on the lab)");
  lab("6.8", distributed, 2, 1.1);
  point("6.8", distributed, 2).lab_overlap = LabResult{1.3, 0.1};
  expect(never, Verdict::refuted,
         "at most 1.10 (figure 6.8, distributed, N = 2, on the lab; with overlap 1.30 on the lab)");

  lab("6.7", central, 2, 0.3);
  lab("6.7", distributed, 8, 0.9);
  expect("Resnet34, split: always below 1", Verdict::confirmed, "at most 0.90");
  lab("6.7", distributed, 2, 1.01);
  expect("Resnet34, split: always below 1", Verdict::refuted, "at most 1.01");

  const std::string async = "Resnet34, asynchronous: below 1 with a central";
  lab("6.11", central, 8, 0.7);
  EXPECT_EQ(of(async).outcome, Verdict::open);  // Nothing is known of the distributed one.
  lab("6.11", distributed, 2, 1.1);
  lab("6.11", distributed, 3, 1.4);
  expect(async, Verdict::confirmed,
         "at most 0.70 (figure 6.11, central, N = 8, on the lab); "
         "at least 1.10 (figure 6.11, distributed, N = 2, on the lab)");
  lab("6.11", distributed, 4, 0.9);
  expect(async, Verdict::refuted, "at least 0.90");
}

/// 6.3 and chapter 8 contradict each other.
TEST_F(Statements, Resnet34sJoinHasBothClaims) {
  const std::string either = "Resnet34, join: always above 1", needed = "server was necessary";
  lab("6.4", central, 2, 0.5);
  lab("6.4", distributed, 2, 1.1);
  // (4.11) with eight workers: 8 * 0.821 / (12.5 * 0.811 + 0.821).
  expect(either, Verdict::refuted, "; (4.11) says at most 0.60 with a central server");
  expect(needed, Verdict::confirmed, "at most 0.50 (figure 6.4, central, N = 2, on the lab)");
  lab("6.4", central, 2, 1.05);
  expect(either, Verdict::confirmed, "at least 1.05 (figure 6.4, central, N = 2");
  expect(needed, Verdict::refuted, "at most 1.05");
  lab("6.4", central, 2, 0.5);
  lab("6.4", distributed, 2, 0.9);  // Nobody exceeds 1.
  expect(needed, Verdict::refuted, "up to 0.90");
}

TEST_F(Statements, ServersAreComparedPointByPoint) {
  const std::string matters = "the kind of server does not matter", never = "never slower";
  for (const char* figure : {"6.3", "6.10"}) {
    lab(figure, central, 8, 5.0);
    lab(figure, distributed, 8, 5.4);
    lab(figure, distributed, 4, 9.0);  // It has no partner.
  }
  expect(matters, Verdict::confirmed, "5.00 with a central server, 5.40 with a distributed one");
  expect(never, Verdict::confirmed, "2 of 2 pairs, at least 1.080 times as fast");
  lab("6.10", central, 8, 4.0);
  expect(matters, Verdict::refuted,
         "4.00 with a central server, 5.40 with a distributed one "
         "(figure 6.10, N = 8, on the lab)");
  lab("6.3", distributed, 8, 4.96);  // It counts as equal.
  expect(never, Verdict::confirmed, "2 of 2 pairs, at least 0.992 times as fast (figure 6.3");
  lab("6.3", distributed, 8, 4.9);
  expect(never, Verdict::refuted, "1 of 2 pairs");
  // A point of the lab is not compared with a simulated one.
  simulated("6.2", central, 8, 9.0);
  lab("6.2", distributed, 8, 1.0);
  expect(never, Verdict::refuted, "1 of 2 pairs");
  simulated("6.2", distributed, 8, 9.9);
  expect(never, Verdict::refuted, "2 of 3 pairs");
}

TEST_F(Statements, OneWorkerIsComparedWithOneMachine) {
  const std::string with_central = "One worker with a central", with_own = "One worker with a dist";
  lab("6.1", central, 1, 0.1);
  lab("6.3", central, 1, 0.95);
  lab("6.1", distributed, 1, 0.91);
  lab("6.3", distributed, 1, 0.998);
  expect(with_central, Verdict::confirmed, "so in 2 of 2 figures: 0.100 (figure 6.1");
  expect(with_own, Verdict::confirmed, "so in 2 of 2 figures: 0.910 (figure 6.1");
  lab("6.3", central, 1, 1.001);
  expect(with_central, Verdict::refuted, "so in 1 of 2 figures");
  lab("6.1", distributed, 1, 0.89);  // That is no longer slightly.
  expect(with_own, Verdict::refuted, "so in 1 of 2 figures: 0.890 (figure 6.1");
}

TEST_F(Statements, SplitPeaksWhereTheEstimateDoes) {
  const std::string peak = "best at N = 4, as the estimate foretold";
  for (int n = 1; n <= 7; ++n) lab("6.6", central, n, n == 4 ? 2.0 : 1.0);
  EXPECT_EQ(of(peak).outcome, Verdict::open);  // A point is missing.
  lab("6.6", central, 8, 1.0);
  expect(peak, Verdict::confirmed, "estimated best at N = 4, best at N = 4");
  lab("6.6", central, 5, 2.01);  // It counts as equally good.
  expect(peak, Verdict::confirmed, "best at N = 5");
  lab("6.6", central, 5, 2.1);
  expect(peak, Verdict::refuted, "best at N = 5");
  lab("6.6", central, 5, 1.0);
  thesis_.costs["squeezenet"].comm = 0.1;  // (4.11) then has its peak earlier.
  expect(peak, Verdict::refuted, "estimated best at N = 2, best at N = 4");
}

TEST_F(Statements, EstimatesNameTheBestOrNot) {
  const std::string named = "always named", contradicts = "contradicts the estimate";
  as_estimated();
  expect(named, Verdict::confirmed, "in 11 of 11 figures");
  expect(contradicts, Verdict::refuted, "estimated best at N = 8 with 1.65, where it is 1.65");
  lab("6.5", distributed, 4, 1.66);  // It counts as equally good.
  expect(named, Verdict::confirmed, "in 11 of 11 figures");
  lab("6.5", distributed, 4, 1.8);
  expect(named, Verdict::refuted,
         "in 10 of 11 figures; not in figure 6.5: distributed, N = 8 named, where it is 1.65, "
         "distributed, N = 4 is best with 1.80");
  expect(contradicts, Verdict::confirmed, "where it is 1.65; best at N = 4 with 1.80");
  lab("6.1", central, 4, 7.0);  // The kind of server counts, too.
  expect(named, Verdict::refuted,
         "in 9 of 11 figures; not in figure 6.1: distributed, N = 1 named");
}

TEST_F(Statements, EstimatesAreAccurateOrNot) {
  const auto off_by = [&](double of_central, double of_distributed) {
    everywhere([&](const ThesisFigure& figure, ServerMode server, int n) {
      return estimated(thesis_, figure, server, n) /
             (server == central ? 1.0 + of_central : 1.0 + of_distributed);
    });
  };
  for (const char* mode : {"Join: estimates", "Split: estimates", "Asynchronous: estimates"}) {
    off_by(0.05, 0.2);
    expect(
        mode, Verdict::confirmed,
        "central: off by 5.0% in the median, 5.0% at most; distributed: by 20.0%, 20.0% at most");
    off_by(0.05, 0.04);  // The distributed ones are no less accurate.
    EXPECT_EQ(of(mode).outcome, Verdict::refuted) << mode;
    off_by(0.15, 0.2);  // The central ones are not accurate.
    EXPECT_EQ(of(mode).outcome, Verdict::refuted) << mode;
  }
  off_by(0.05, 0.2);
  lab("6.4", distributed, 2, 100.0);  // Its tendency is wrong.
  expect("Join: estimates", Verdict::refuted, "its best N is named in 3 of 4 figures");
  expect("Split: estimates", Verdict::confirmed, "its best N is named in 2 of 2 figures");
}

TEST_F(Statements, TruthIsBetweenBestAndWorst) {
  const std::string between = "between best and worst case";
  as_estimated();
  expect(between, Verdict::confirmed, "80 of 80 points do");
  lab("6.3", central, 8, 4.68);  // It counts as equal to the worst case.
  expect(between, Verdict::confirmed, "80 of 80 points do");
  // SqueezeNet, join, N = 8: the worst case is 8 * 0.758 / (16 * 0.033 + 0.758) = 4.715.
  lab("6.3", central, 8, 4.5);
  expect(between, Verdict::confirmed,
         "79 of 80 points do, and the others are outside by 4.8% at most (figure 6.3, central, "
         "N = 8, on the lab)");
  // The best case is 8 * 0.758 / (9 * 0.033 + 0.758) = 5.748.
  lab("6.3", central, 8, 6.5);
  expect(between, Verdict::refuted, "79 of 80 points do, and the others are outside by 13.1%");
}

TEST_F(Statements, CostsAreCompared) {
  const std::string transfers = "Transfers of GoogLeNet", gradients = "t_grad of the four";
  const auto measured = [&](const char* network, double comm, double grad) {
    thesis_.costs[network].comm = comm;
    thesis_.costs[network].grad_cpu = grad;
  };
  measured("squeezenet", 0.03, 1.0);
  measured("googlenet", 0.21, 1.1);
  measured("resnet34", 0.81, 1.2);
  EXPECT_EQ(of(transfers).outcome, Verdict::open);
  measured("vgg16e", 5.1, 1.0);
  // Table 6.1 has 0.210, 0.811 and 5.153 s to 0.033 s.
  expect(transfers, Verdict::confirmed,
         "7.0, 27.0, 170.0 times here; Table 6.1 has 6.4, 24.6, 156.2");
  expect(gradients, Verdict::confirmed, "1.00 to 1.20 s");
  measured("vgg16e", 4.5, 8.0);
  expect(transfers, Verdict::refuted, "150.0 times here");
  expect(gradients, Verdict::refuted, "1.00 to 8.00 s");
}

/// With the parts of Algorithm 3.7 the estimate is what the busiest owner moves: that of VGG16E's
/// fc6 has most of the weights.
TEST_F(Statements, UnequalPartsAreOurOwnExplanation) {
  models::ModelOptions options;
  options.classes = caltech_classes;
  std::array<double, 2> loads{};
  for (const ParameterSpec& tensor : models::build("vgg16e", options).trained())
    (loads[1] < loads[0] ? loads[1] : loads[0]) += static_cast<double>(tensor.shape.elements());
  const double part = std::max(loads[0], loads[1]) / (loads[0] + loads[1]);
  EXPECT_GT(part, 0.73);  // 25,088 x 4,096 of 140,619,072.
  lab("6.1", distributed, 2, 2 * 0.719 / (2 * 5.153 * part + 0.719));
  const PredictionError equal = estimate_error(thesis_, distributed, Sync::join),
                        dealt = estimate_error(thesis_, distributed, Sync::join, Parts::dealt);
  EXPECT_EQ(equal.points, 1U);
  EXPECT_EQ(equal.high, 1U);
  EXPECT_GT(equal.worst, 0.3);
  EXPECT_NEAR(dealt.worst, 0.0, 1e-9);
  for (const Verdict& verdict : verdicts(thesis_))
    EXPECT_EQ(verdict.statement.find("3.7"), std::string::npos) << verdict.statement;
}

TEST_F(Statements, AccuracyIsOfTheSimulationAgainstTheLab) {
  const auto both = [&](int workers, double lab_speedup, double simulated_speedup) {
    lab("6.3", distributed, workers, lab_speedup);
    simulated("6.3", distributed, workers, simulated_speedup);
  };
  both(2, 2.0, 2.02);
  both(4, 4.0, 3.8);
  both(8, 8.0, 8.0);
  const PredictionError error = prediction_error(thesis_, {Order::strict, Order::overlap});
  EXPECT_EQ(error.points, 3U);
  EXPECT_EQ(error.high, 1U);
  EXPECT_NEAR(error.median, 0.01, 1e-12);
  EXPECT_NEAR(error.worst, 0.05, 1e-12);
  EXPECT_EQ(error.worst_at, "figure 6.3, distributed, N = 4");
  EXPECT_EQ(prediction_error(thesis_, {Order::overlap}).points, 0U);
}

}  // namespace
}  // namespace duplex::tools::reports
