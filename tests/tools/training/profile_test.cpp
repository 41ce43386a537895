// Tests what --profile measures of a training, alone and among ranks, and that a run of dist with a
// profile opens in every command that reads runs.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "core/clock.h"
#include "core/device.h"
#include "core/exchange.h"
#include "datasets/loader.h"
#include "models/registry.h"
#include "tests/tools/training_runs.h"
#include "tools/text/quartiles.h"
#include "tools/training/loop.h"
#include "tools/training/network_computation.h"
#include "tools/training/profile.h"

namespace duplex::tools::testing {
namespace {

/// Notes when the last await returned.
class NotingExchange final : public Exchange {
 public:
  void begin(std::uint64_t) override {}
  void await(std::size_t) override { returned = clock_ns(); }
  void push(std::size_t) override {}
  void end() override {}
  std::int64_t returned = 0;
};

/// A layer's figure is the median, after the warm-up, of what whoever observed the network before
/// goes on to be told; and each of these times begins when the exchange has given the weights.
TEST(Profile, HasTheMediansOfTheLayersWithoutTheExchange) {
  const auto device = make_device("reference", 1);
  const std::int64_t batch = 2;
  Network network(models::build("lenet", {}), *device, batch);
  network.initialise(1);
  NotingExchange exchange;
  std::map<std::pair<std::size_t, Phase>, std::vector<double>> told;
  network.observe([&](std::size_t node, Phase phase, std::int64_t begin, std::int64_t end) {
    told[{node, phase}].push_back(seconds(end - begin));
    if (phase == Phase::forward) {
      EXPECT_GE(begin, exchange.returned) << node;
    }
  });
  constexpr std::uint64_t warm_up = 2, steps = 7;
  const Profile profile(network, warm_up);
  const std::vector<float> pixels(static_cast<std::size_t>(batch) * 28 * 28, 0.5F);
  const std::vector<std::int32_t> labels{3, 4};
  datasets::Batch images;
  images.pixels = pixels.data();
  images.labels = labels.data();
  NetworkComputation computation(
      network,
      {[&]() -> const datasets::Batch& { return images; }, pixels.size() * sizeof(float), {}}, 1,
      [](std::uint64_t) { return false; });
  for (std::uint64_t step = 0; step < steps; ++step) computation.run(exchange, step);

  const ProfileFile file = profile.file();
  EXPECT_EQ(file.network, "LeNet");
  EXPECT_EQ(file.batch, batch);
  ASSERT_EQ(file.layers.size() + 1, network.layers());
  const auto median = [&](std::size_t node, Phase phase) {
    const std::vector<double>& all = told.at({node, phase});
    EXPECT_EQ(all.size(), steps);
    return quartiles_of({all.begin() + warm_up, all.end()}).median;
  };
  for (std::size_t node = 1; node < network.layers(); ++node) {
    const ProfileLayer& layer = file.layers[node - 1];
    EXPECT_EQ(layer.name, network.model().nodes()[node].name);
    EXPECT_EQ(layer.steps, steps) << layer.name;
    EXPECT_EQ(layer.forward, median(node, Phase::forward)) << layer.name;
    EXPECT_EQ(layer.backward, median(node, Phase::backward)) << layer.name;
  }
}

TEST(Schedule, CountsTheWarmUpOnceWhereATrainingGoesOn) {
  Schedule schedule;
  schedule.steps = 60;
  EXPECT_EQ(schedule.warm_up(), 6U);
  EXPECT_EQ(schedule.warm_up_after(0), 6U);
  EXPECT_EQ(schedule.warm_up_after(4), 2U);
  EXPECT_EQ(schedule.warm_up_after(6), 0U);
  EXPECT_EQ(schedule.warm_up_after(59), 0U);
}

class DistProfile : public TrainingRuns {
 protected:
  /// Trains by all ranks; returns what each of them printed.
  std::vector<std::string> train(const std::string& name, int ranks,
                                 const std::vector<std::string>& more) const {
    std::vector<std::string> printed;
    for (Process& process : start(name, ranks, 8, plus({"--profile", "--batches", "5"}, more))) {
      const Result result = process.wait();
      EXPECT_EQ(result.exit, 0) << result.err;
      printed.push_back(result.out);
    }
    return printed;
  }
  nlohmann::json profile_of(const std::string& name) const {
    return nlohmann::json::parse(read_text(folder_ / (name + "/profile.json")));
  }
};

TEST_F(DistProfile, IsOfTheFirstWorkersPart) {
  struct Case {
    const char* name;
    int ranks;
    std::vector<std::string> flags;
    std::size_t first_worker;
    int batch;
  };
  // The first of three workers trains on three of the eight images.
  for (const Case& each :
       {Case{"join", 2, {"--trace"}, 0, 8}, Case{"central", 3, {"--server", "central"}, 1, 8},
        Case{"split", 3, {"--sync", "split"}, 0, 3}, Case{"async", 2, {"--sync", "none"}, 0, 8}}) {
    SCOPED_TRACE(each.name);
    const std::vector<std::string> printed = train(each.name, each.ranks, each.flags);
    for (std::size_t rank = 0; rank < printed.size(); ++rank)
      EXPECT_EQ(
          printed[rank].find("layers   the medians of all layers add up to ") != std::string::npos,
          rank == each.first_worker)
          << printed[rank];
    const nlohmann::json profile = profile_of(each.name);
    EXPECT_EQ(profile.at("network"), "LeNet");
    EXPECT_EQ(profile.at("batch"), each.batch);
    const Model lenet = models::build("lenet", {});
    ASSERT_EQ(profile.at("layers").size() + 1, lenet.nodes().size());
    for (std::size_t node = 1; node < lenet.nodes().size(); ++node) {
      const nlohmann::json& layer = profile.at("layers").at(node - 1);
      EXPECT_EQ(layer.at("name"), lenet.nodes()[node].name);
      EXPECT_EQ(layer.at("steps"), 5);
      EXPECT_GT(layer.at("forward_s").get<double>() + layer.at("backward_s").get<double>(), 0.0)
          << layer.dump();
    }
  }
  // Tracing and profiling observe the same layers.
  EXPECT_NE(read_text(folder_ / "join/trace.json").find("\"cat\":\"forward\""), std::string::npos);
}

TEST_F(DistProfile, OpensInEveryCommandThatReadsRuns) {
  train("run", 2, {});
  const std::string directory = folder_ / "run";
  const Result page = run({"report", directory, "--output", folder_ / "page.html"});
  ASSERT_EQ(page.exit, 0) << page.err;
  const std::string html = read_text(folder_ / "page.html");
  EXPECT_NE(html.find("of the first worker, in the median of the steps"), std::string::npos);
  EXPECT_NE(html.find("There is no timeline: "), std::string::npos);
  const Result table = run({"compare", "tests/tools/recorded_run/local", directory});
  EXPECT_EQ(table.exit, 0) << table.err;
  const Result estimate = run({"estimate", "--from", directory, "--workers", "2"});
  EXPECT_EQ(estimate.exit, 0) << estimate.err;
  EXPECT_NE(estimate.err.find("t_grad "), std::string::npos) << estimate.err;
  const std::vector<std::string> simulate{"simulate", "--from", directory, "--workers", "3"};
  const Result simulated = run(simulate);
  EXPECT_EQ(simulated.exit, 0) << simulated.err;
  EXPECT_NE((simulated.out + simulated.err).find("profile from " + directory + " (dist, LeNet"),
            std::string::npos)
      << simulated.out << simulated.err;
  // Without its profile, the run has one t_grad for all layers together.
  std::filesystem::remove(folder_ / "run/profile.json");
  const Result bare = run(simulate);
  EXPECT_EQ(bare.exit, 0) << bare.err;
  EXPECT_EQ((bare.out + bare.err).find("profile from "), std::string::npos);
  const Result page_without = run({"report", directory, "--output", folder_ / "page.html"});
  ASSERT_EQ(page_without.exit, 0) << page_without.err;
  EXPECT_NE(read_text(folder_ / "page.html").find("and no t_grad by layer"), std::string::npos);
}

TEST_F(DistProfile, IsNothingForAReplayToMeasure) {
  write_two_nodes();
  const Result result =
      run({"dist", "--net", "lenet", "--device", "replay:0.01", "--batches", "2", "--profile",
           "--nodefile", folder_ / "nodes", "--index", "0", "--logdir", folder_ / "replay"});
  EXPECT_EQ(result.exit, 2);
  EXPECT_NE(result.err.find("--device replay computes nothing: no --accuracy, --test-every, "
                            "--until, --save, --profile"),
            std::string::npos)
      << result.err;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "replay"));
}

}  // namespace
}  // namespace duplex::tools::testing
