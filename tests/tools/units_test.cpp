// Tests the parts that commands are made of against values worked out by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "core/device.h"
#include "core/error.h"
#include "layers/network.h"
#include "models/registry.h"
#include "tests/temporary_folder.h"
#include "tests/tools/program.h"
#include "tools/launch/nodefile.h"
#include "tools/plan/schedule.h"
#include "tools/prediction/equations.h"
#include "tools/text/quartiles.h"
#include "tools/text/sampled_values.h"
#include "tools/text/table.h"
#include "tools/training/divergence.h"
#include "tools/training/evaluation.h"
#include "tools/training/metrics.h"

namespace duplex::tools {
namespace {

TEST(Table, ColumnsFitTheirWidestCell) {
  Table table({{"name", Table::Align::left}, {"n", Table::Align::right}});
  table.row({"a", "100"});
  table.rule();
  table.row({"total", "7"});
  EXPECT_EQ(table.str(),
            "name     n\n"
            "-----  ---\n"
            "a      100\n"
            "-----  ---\n"
            "total    7\n");
}

TEST(Table, GroupsDigits) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1,000");
  EXPECT_EQ(grouped(143667240), "143,667,240");
  EXPECT_EQ(grouped(-100), "-100");
  EXPECT_EQ(grouped(-1234567), "-1,234,567");
}

TEST(Statistics, QuartilesInterpolate) {
  const Quartiles spread = quartiles_of({4.0, 1.0, 3.0, 2.0});
  EXPECT_DOUBLE_EQ(spread.median, 2.5);
  EXPECT_DOUBLE_EQ(spread.low, 1.75);
  EXPECT_DOUBLE_EQ(spread.high, 3.25);
  EXPECT_EQ(quartiles_of({}).count, 0U);
  EXPECT_DOUBLE_EQ(quartiles_of({7.0}).high, 7.0);
}

/// A sample of many values has nearly their quartiles.
TEST(Statistics, QuartilesOfManyValuesAreThoseOfASample) {
  SampledValues few(8), many;
  for (const double value : {4.0, 1.0, 3.0, 2.0}) few.add(value);
  EXPECT_DOUBLE_EQ(few.quartiles().median, quartiles_of({4.0, 1.0, 3.0, 2.0}).median);
  constexpr int values = 100000;
  for (int i = 0; i < values; ++i) many.add(i);
  const Quartiles spread = many.quartiles();
  EXPECT_EQ(spread.count, static_cast<std::size_t>(values));
  EXPECT_NEAR(spread.low, 0.25 * values, 0.03 * values);
  EXPECT_NEAR(spread.median, 0.5 * values, 0.03 * values);
  EXPECT_NEAR(spread.high, 0.75 * values, 0.03 * values);
}

TEST(Statistics, DurationsHaveTheirUnit) {
  EXPECT_EQ(duration_text(1.5), "1.500 s");
  EXPECT_EQ(duration_text(0.0123), "12.30 ms");
  EXPECT_EQ(duration_text(87e-6), "87.00 us");
}

// Table 6.1 has t_grad 0.821 s and t_comm 0.811 s for Resnet34.
TEST(Estimate, SynchronousEquations) {
  const Costs resnet{0.811, 0.821};
  EXPECT_NEAR(sync_central_best(resnet, 4), 5 * 0.811 + 0.821, 1e-12);
  EXPECT_NEAR(sync_central_worst(resnet, 4), 8 * 0.811 + 0.821, 1e-12);
  EXPECT_NEAR(sync_central(resnet, 4), 6.5 * 0.811 + 0.821, 1e-12);
  EXPECT_NEAR(sync_distributed(resnet, 8), 1.75 * 0.811 + 0.821, 1e-12);
  const auto join = [&](int workers, net::ServerMode server) {
    return speedup(resnet, net::Sync::join, server, workers, 128);
  };
  EXPECT_NEAR(join(8, net::ServerMode::distributed), 8 * 0.821 / 2.24025, 1e-9);
  EXPECT_NEAR(join(4, net::ServerMode::central), 4 * 0.821 / 6.0925, 1e-9);
  EXPECT_NEAR(join(1, net::ServerMode::distributed), 1.0, 1e-12);
  // Split takes 128 iterations of 1.75 c + g / 8, and of 6.5 c + g / 4.
  EXPECT_NEAR(speedup(resnet, net::Sync::split, net::ServerMode::distributed, 8, 128),
              0.821 / (1.41925 + 0.102625), 1e-9);
  EXPECT_NEAR(speedup(resnet, net::Sync::split, net::ServerMode::central, 4, 128),
              0.821 / (5.2715 + 0.20525), 1e-9);
  // Async takes max(129 c + g, 7 c + 16 (2c + g)) = 129 c + g at best, and 16 (16 c + g) at worst.
  EXPECT_NEAR(speedup(resnet, net::Sync::none, net::ServerMode::central, 8, 128),
              128 * 0.821 / ((105.44 + 220.752) / 2), 1e-9);
  EXPECT_NEAR(async_central_best({0.033, 0.758}, 8, 128), 0.231 + 16 * 0.824, 1e-9);
  EXPECT_NEAR(speedup(resnet, net::Sync::none, net::ServerMode::distributed, 8, 128),
              128 * 0.821 / (16 * 2.24025), 1e-9);
}

TEST(Evaluation, RankOfTheLabel) {
  const float logits[] = {0.1F, 0.4F, 0.4F, 0.1F};
  const auto rank = [&](std::int32_t label) {
    return judge(LossKind::softmax_cross_entropy, logits, 4, label).rank;
  };
  EXPECT_EQ(rank(1), 0U);
  EXPECT_EQ(rank(2), 1U);
  EXPECT_EQ(rank(0), 2U);
  EXPECT_EQ(rank(3), 3U);
}

/// If they were probabilities in float32, all but the first would be 0, and so equal.
TEST(Evaluation, IsOfTheLogits) {
  const float logits[] = {200.0F, 20.0F, 19.0F, 18.0F, 17.0F, 16.0F, 15.0F, 100.0F};
  const Judgement judgement = judge(LossKind::softmax_cross_entropy, logits, 8, 7);
  EXPECT_TRUE(judgement.finite);
  EXPECT_EQ(judgement.rank, 1U);
  EXPECT_NEAR(judgement.loss, 100.0, 1e-12);
}

TEST(Evaluation, TheLossIsOfTheNetworksKind) {
  const float outputs[] = {0.5F, -1.0F, 2.0F};
  EXPECT_NEAR(judge(LossKind::squared_error, outputs, 3, 2).loss, 0.5 * (0.25 + 1.0 + 1.0), 1e-12);
  const double sum = std::exp(0.5) + std::exp(-1.0) + std::exp(2.0);
  EXPECT_NEAR(judge(LossKind::softmax_cross_entropy, outputs, 3, 2).loss, std::log(sum) - 2.0,
              1e-12);
}

TEST(Evaluation, WhatIsNotFiniteIsNeverRight) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), infinity, -infinity}) {
    for (std::size_t at = 0; at < 3; ++at) {
      float logits[] = {3.0F, 2.0F, 1.0F};
      logits[at] = bad;
      const Judgement judgement = judge(LossKind::softmax_cross_entropy, logits, 3, 0);
      EXPECT_FALSE(judgement.finite);
      EXPECT_EQ(judgement.rank, 3U);
      EXPECT_TRUE(std::isnan(judgement.loss));
    }
  }
}

Schedule schedule_of(std::uint64_t epochs, std::uint64_t samples, std::uint64_t batch) {
  Schedule schedule;
  schedule.step_samples = batch;
  schedule.epoch_samples = samples;
  schedule.steps = epochs * samples / batch;
  return schedule;
}

std::vector<std::uint64_t> tests_of(Schedule schedule, std::uint64_t every) {
  schedule.test_every = every;
  std::vector<std::uint64_t> steps;
  for (std::uint64_t n = 1; n < schedule.steps; ++n)
    if (schedule.test_due(n)) steps.push_back(n);
  return steps;
}

/// With 63 images, two batches of 32 lack an image: an epoch does not end with a step.
TEST(Epochs, AreSamplesSeen) {
  for (const std::uint64_t samples : {364, 63, 64}) {
    const Schedule schedule = schedule_of(10, samples, 32);
    EXPECT_EQ(schedule.epoch_of(0), 0U);
    EXPECT_EQ(schedule.epoch_of(schedule.steps - 1), 9U);
    EXPECT_LE(schedule.epochs(schedule.steps), 10.0);
    const std::vector<std::uint64_t> tests = tests_of(schedule, 1);
    EXPECT_EQ(tests.size(), 9U) << samples;
    for (std::size_t i = 0; i < tests.size(); ++i) {
      EXPECT_GE(schedule.epochs(tests[i]), static_cast<double>(i + 1));
      EXPECT_LT(schedule.epochs(tests[i] - 1), static_cast<double>(i + 1));
    }
    EXPECT_EQ(tests_of(schedule, 5).size(), 1U);
    EXPECT_TRUE(tests_of(schedule, 0).empty());
  }
  EXPECT_EQ(schedule_of(10, 63, 32).steps, 19U);
}

TEST(Epochs, TestsWaitForTheEndOfARound) {
  Schedule schedule = schedule_of(10, 100, 10);
  schedule.steps_per_round = 4;
  EXPECT_EQ(tests_of(schedule, 1),
            (std::vector<std::uint64_t>{12, 20, 32, 40, 52, 60, 72, 80, 92}));
  schedule.steps_per_round = 25;  // That is more than an epoch, so there is a test for each round.
  EXPECT_EQ(tests_of(schedule, 1), (std::vector<std::uint64_t>{25, 50, 75}));
}

TEST(NotFinite, IsLookedForSoonAndEverAgain) {
  std::vector<std::uint64_t> looks;
  for (std::uint64_t step = 0; step < 307; ++step)
    if (looks_for_nan(step, 307)) looks.push_back(step + 1);
  EXPECT_EQ(looks, (std::vector<std::uint64_t>{1, 2, 4, 8, 16, 32, 64, 100, 200, 300, 307}));
}

TEST(Learning, ALossThatStaysAtGuessingIsSaid) {
  models::ModelOptions options;
  options.classes = 4;
  const Model lenet = models::build("lenet", options);
  TrainingResult result;
  result.steps = 100;
  result.loss = std::log(4.0) * 0.99;
  const std::string told = learning_report_of(result, lenet);
  EXPECT_NE(told.find("guessing among 4 classes (1.3863)"), std::string::npos) << told;
  EXPECT_NE(told.find("--optimizer adam"), std::string::npos) << told;
  result.loss = std::log(4.0) * 0.9;
  EXPECT_EQ(learning_report_of(result, lenet), "");
  result.loss = std::log(4.0);
  result.steps = 10;  // Nothing has learnt much by then.
  EXPECT_EQ(learning_report_of(result, lenet), "");

  // Each auxiliary classifier guesses, too, and counts 0.3.
  options.auxiliary = true;
  const Model googlenet = models::build("googlenet", options);
  result.steps = 100;
  result.loss = 1.6 * std::log(4.0);
  EXPECT_NE(learning_report_of(result, googlenet), "");
  result.loss = std::log(4.0);
  EXPECT_EQ(learning_report_of(result, googlenet), "");
}

TEST(Networks, ANameThatBeginsAlikeIsSuggested) {
  for (const char* name : {"vgg", "VGG19", "resnet-34"}) {
    try {
      models::build(name, {});
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      const std::string meant = name[0] == 'r' ? "resnet34" : "vgg16e, which is VGG-19";
      EXPECT_NE(std::string(error.what()).find("(did you mean " + meant + "?)"), std::string::npos)
          << error.what();
    }
  }
  try {
    models::build("transformer", {});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find("did you mean"), std::string::npos) << error.what();
  }
}

datasets::Split squares(const TemporaryFolder& folder) {
  testing::write_squares(folder.path(), 4, 10);
  datasets::DatasetOptions options;
  options.channels = 1;
  options.height = options.width = 28;
  return datasets::split(datasets::open_dataset(folder.path(), options));
}

/// With zeros for weights, all outputs are 0.
TEST(Evaluation, ANetworksOwnLossIsTested) {
  const TemporaryFolder folder;
  const datasets::Split parts = squares(folder);
  const auto device = make_device("reference", 1);
  for (const LossKind kind : {LossKind::softmax_cross_entropy, LossKind::squared_error}) {
    Model net("Zeros", {1, 1, 28, 28});
    const auto logits = net.linear("fc", net.input(), 10, false);
    if (kind == LossKind::squared_error) {
      net.squared_error("loss", logits);
    } else {
      net.softmax("loss", logits);
    }
    Network network(net, *device, 4);
    for (Parameter& parameter : network.parameters()) device->fill(parameter.weights, 0.0F);
    const double expected = kind == LossKind::squared_error ? 0.5 : std::log(10.0);
    EXPECT_NEAR(evaluate(network, parts.test, {}).loss, expected, 1e-12);
  }
}

TEST(Evaluation, IsNotObserved) {
  const TemporaryFolder folder;
  const datasets::Split parts = squares(folder);
  const auto device = make_device("reference", 1);
  models::ModelOptions classes;
  classes.classes = 10;
  Network network(models::build("lenet", classes), *device, 4);
  network.initialise(1);
  int heard = 0;
  network.observe([&](std::size_t, Phase, std::int64_t, std::int64_t) { ++heard; });
  EXPECT_EQ(evaluate(network, parts.test, {}).samples, 10U);
  EXPECT_EQ(heard, 0);
  const std::vector<float> images(4 * 28 * 28);
  network.forward(images.data(), {});
  EXPECT_GT(heard, 0);
}

/// The addresses of a nodefile whose slots are ranks.
std::vector<net::Address> slots_of(const std::string& path) {
  return addresses_of(ranks_of(read_nodes(path), false));
}

std::string nodefile_error(const std::string& path, const std::string& text) {
  testing::write_text(path, text);
  try {
    read_nodes(path);
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::usage);
    return error.what();
  }
  return "no error";
}

TEST(Nodefile, HostsPortsAndComments) {
  const TemporaryFolder folder;
  testing::write_text(folder / "nodes",
                      "# lab\nalpha\n\n beta:9000  # the fast one\nalpha\n[::1]:5\n");
  const auto nodes = slots_of(folder / "nodes");
  ASSERT_EQ(nodes.size(), 4U);
  EXPECT_EQ(nodes[0].str(), "alpha:7117");
  EXPECT_EQ(nodes[1].str(), "beta:9000");
  EXPECT_EQ(nodes[2].str(), "alpha:7118");
  EXPECT_EQ(nodes[3].host, "::1");
}

TEST(Nodefile, SlotsRepeatAHost) {
  const TemporaryFolder folder;
  testing::write_text(folder / "nodes", "alpha slots=3\nbeta\t slots=1 # one\nalpha\n");
  std::string all;
  for (const net::Address& node : slots_of(folder / "nodes")) all += node.str() + " ";
  EXPECT_EQ(all, "alpha:7117 alpha:7118 alpha:7119 beta:7117 alpha:7120 ");
  const auto ranks = [&](bool together, bool central) {
    std::string text;
    for (const Node& rank : ranks_of(read_nodes(folder / "nodes"), together, central))
      text += rank.address.str() + "*" + std::to_string(rank.slots) + " ";
    return text;
  };
  EXPECT_EQ(ranks(true, false), "alpha:7117*3 beta:7117*1 alpha:7120*1 ");
  EXPECT_EQ(ranks(true, true), "alpha:7117*1 alpha:7118*2 beta:7117*1 alpha:7120*1 ");
  EXPECT_EQ(ranks(false, true), "alpha:7117*1 alpha:7118*1 alpha:7119*1 beta:7117*1 alpha:7120*1 ");
  for (const char* wrong : {"a slots=0\n", "a slots=two\n", "a:1 slots=2 3\n", "a slots=2 b\n"}) {
    EXPECT_NE(nodefile_error(folder / "nodes", wrong).find(":1: expected"), std::string::npos)
        << wrong;
  }
}

TEST(Nodefile, ErrorsNameTheLine) {
  const TemporaryFolder folder;
  const std::string path = folder / "nodes";
  EXPECT_NE(nodefile_error(path, "a:1\nb c\n").find(":2: "), std::string::npos);
  EXPECT_NE(nodefile_error(path, "a:1\nb:2\na:1\n").find("rank 0 already, in line 1"),
            std::string::npos);
  EXPECT_NE(nodefile_error(path, "a:7118\na slots=3\n").find(":2: a:7118 is rank 0 already"),
            std::string::npos);
  std::string slots;
  for (int i = 0; i < 58; ++i) slots += "a slots=1024\n";
  EXPECT_NE(nodefile_error(path, slots).find(":58: a has more ranks than ports"),
            std::string::npos);
  for (int i = 0; i < 8; ++i) slots.insert(0, "b slots=1024\n");
  EXPECT_NE(nodefile_error(path, slots).find(":65: there are more than 65536 ranks"),
            std::string::npos);
  EXPECT_NE(nodefile_error(path, "a:99999\n").find(":1: "), std::string::npos);
  EXPECT_NE(nodefile_error(path, "# nobody\n").find("names no machine"), std::string::npos);
  EXPECT_THROW(read_nodes(folder / "none"), Error);
}

}  // namespace
}  // namespace duplex::tools
