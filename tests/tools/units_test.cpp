// The pieces that commands are made of, against values worked out by hand.
#include <gtest/gtest.h>

#include "core/device.h"
#include "core/error.h"
#include "layers/network.h"
#include "models/registry.h"
#include "tests/temporary_folder.h"
#include "tests/tools/program.h"
#include "tools/equations.h"
#include "tools/evaluation.h"
#include "tools/nodefile.h"
#include "tools/statistics.h"
#include "tools/table.h"

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
  const Spread spread = spread_of({4.0, 1.0, 3.0, 2.0});
  EXPECT_DOUBLE_EQ(spread.median, 2.5);
  EXPECT_DOUBLE_EQ(spread.low, 1.75);
  EXPECT_DOUBLE_EQ(spread.high, 3.25);
  EXPECT_EQ(spread_of({}).count, 0U);
  EXPECT_DOUBLE_EQ(spread_of({7.0}).high, 7.0);
}

TEST(Statistics, DurationsHaveTheirUnit) {
  EXPECT_EQ(duration_text(1.5), "1.500 s");
  EXPECT_EQ(duration_text(0.0123), "12.30 ms");
  EXPECT_EQ(duration_text(87e-6), "87.00 us");
}

// Table 6.1, Resnet34: t_grad 0.821 s, t_comm 0.811 s.
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
  // Split: 128 iterations of 1.75 c + g / 8, and of 6.5 c + g / 4.
  EXPECT_NEAR(speedup(resnet, net::Sync::split, net::ServerMode::distributed, 8, 128),
              0.821 / (1.41925 + 0.102625), 1e-9);
  EXPECT_NEAR(speedup(resnet, net::Sync::split, net::ServerMode::central, 4, 128),
              0.821 / (5.2715 + 0.20525), 1e-9);
  // Async: best max(129 c + g, 7 c + 16 (2c + g)) = 129 c + g; worst 16 (16 c + g).
  EXPECT_NEAR(speedup(resnet, net::Sync::none, net::ServerMode::central, 8, 128),
              128 * 0.821 / ((105.44 + 220.752) / 2), 1e-9);
  EXPECT_NEAR(async_central_best({0.033, 0.758}, 8, 128), 0.231 + 16 * 0.824, 1e-9);
  EXPECT_NEAR(speedup(resnet, net::Sync::none, net::ServerMode::distributed, 8, 128),
              128 * 0.821 / (16 * 2.24025), 1e-9);
}

TEST(Evaluation, RankOfTheLabel) {
  const float outputs[] = {0.1F, 0.4F, 0.4F, 0.1F};
  EXPECT_EQ(rank_of_label(outputs, 4, 1), 0U);
  EXPECT_EQ(rank_of_label(outputs, 4, 2), 1U);
  EXPECT_EQ(rank_of_label(outputs, 4, 0), 2U);
  EXPECT_EQ(rank_of_label(outputs, 4, 3), 3U);
}

TEST(Evaluation, IsNotObserved) {
  const TemporaryFolder folder;
  testing::write_squares(folder.path(), 4, 10);
  datasets::DatasetOptions options;
  options.channels = 1;
  options.height = options.width = 28;
  const datasets::Split parts = datasets::split(datasets::open_dataset(folder.path(), options));
  const auto device = make_device("reference", 1);
  models::ModelOptions classes;
  classes.classes = 10;
  Network network(models::build("lenet", classes), *device, 4);
  network.initialise(1);
  int heard = 0;
  network.observe([&](std::size_t, Phase, std::int64_t, std::int64_t) { ++heard; });
  EXPECT_EQ(evaluate(network, parts.test, 1).samples, 10U);
  EXPECT_EQ(heard, 0);
  const std::vector<float> pictures(4 * 28 * 28);
  network.forward(pictures.data(), {});
  EXPECT_GT(heard, 0);
}

std::string nodefile_error(const std::string& path, const std::string& text) {
  testing::write_text(path, text);
  try {
    read_nodefile(path);
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
  const auto nodes = read_nodefile(folder / "nodes");
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
  for (const net::Address& node : read_nodefile(folder / "nodes")) all += node.str() + " ";
  EXPECT_EQ(all, "alpha:7117 alpha:7118 alpha:7119 beta:7117 alpha:7120 ");
  for (const char* wrong : {"a slots=0\n", "a slots=two\n", "a:1 slots=2\n", "a slots=2 b\n"}) {
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
  EXPECT_NE(nodefile_error(path, "a:99999\n").find(":1: "), std::string::npos);
  EXPECT_NE(nodefile_error(path, "# nobody\n").find("names no machine"), std::string::npos);
  EXPECT_THROW(read_nodefile(folder / "none"), Error);
}

}  // namespace
}  // namespace duplex::tools
