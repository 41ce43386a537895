// Running statistics that travel in a report, and the checkpoint that a server makes of them.
#include "tools/checkpoint/statistics_report.h"

#include <gtest/gtest.h>

#include "core/device.h"
#include "layers/checkpoint.h"
#include "models/registry.h"
#include "tests/temporary_folder.h"

namespace duplex::tools {
namespace {

using Values = std::vector<std::vector<float>>;

Values values_of(Network& network) {
  Values values;
  for (const StateArray& array : state_of(network)) {
    values.emplace_back(static_cast<std::size_t>(array.shape.elements()));
    array.get(values.back().data());
  }
  return values;
}

/// A network without batch normalization has no statistics, and its report stays as it is.
TEST(StatisticsReport, MakesTheCheckpointOfTheWorker) {
  for (const char* name : {"resnet34", "lenet"}) {
    models::ModelOptions options;
    options.classes = 4;
    if (std::string(name) == "resnet34") options.input = 32;
    const Model model = models::build(name, options);
    const auto device = make_device("reference", 1);
    Network worker(model, *device, 1, false);
    worker.initialise(7);
    float next = 0.5F;  // Every statistic gets values of its own.
    for (Parameter& statistic : worker.statistics()) {
      std::vector<float> own(static_cast<std::size_t>(statistic.spec.shape.elements()));
      for (float& value : own) value = next += 0.25F;
      device->upload(statistic.weights, own.data());
    }
    const std::size_t count = statistics_count(model);
    EXPECT_EQ(count > 0, std::string(name) == "resnet34");

    std::string report = statistics_text(worker) + "trace";
    const std::vector<float> statistics = take_statistics(report, count);
    EXPECT_EQ(report, "trace");
    ASSERT_EQ(statistics.size(), count);
    Values weights;
    std::vector<const float*> places;
    for (const Parameter& parameter : worker.parameters()) {
      weights.emplace_back(static_cast<std::size_t>(parameter.spec.shape.elements()));
      device->download(weights.back().data(), parameter.weights);
    }
    for (const std::vector<float>& each : weights) places.push_back(each.data());
    const TemporaryFolder folder;
    save_state(folder / "saved", checkpoint_arrays(model, places, statistics), {});
    Network loaded(model, *device, 1, false);
    load_checkpoint(folder / "saved", loaded);
    EXPECT_EQ(values_of(loaded), values_of(worker)) << name;
  }
  std::string short_report(7, 'x');
  EXPECT_TRUE(take_statistics(short_report, 2).empty());
  EXPECT_EQ(short_report.size(), 7U);
}

}  // namespace
}  // namespace duplex::tools
