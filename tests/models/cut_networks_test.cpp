// Tests that every network, cut over ranks, computes what it does whole: with the same bits in
// stages, and to rounding by channels.
#include <gtest/gtest.h>

#include <cmath>

#include "models/registry.h"
#include "tests/layers/parts/placements.h"
#include "tests/layers/parts/run_parts.h"

namespace duplex::test {
namespace {

constexpr std::int64_t samples = 2;

/// The networks on inputs that are as small as they take.
std::vector<Model> networks() {
  std::vector<Model> networks;
  for (const auto& [name, input] :
       std::vector<std::pair<std::string, std::int64_t>>{{"lenet", 28},
                                                         {"alexnet", 67},
                                                         {"squeezenet", 48},
                                                         {"googlenet", 96},
                                                         {"resnet34", 32},
                                                         {"vgg16e", 32}}) {
    models::ModelOptions options;
    options.classes = 7;
    options.input = input;
    options.auxiliary = name == "googlenet";
    options.zero_padded_shortcuts = name == "resnet34";
    networks.push_back(models::build(name, options));
  }
  return networks;
}

/// Compares loss and gradients of one step.
void compare(const Model& model, const Placement& placement, bool bits) {
  const auto device = backend("onednn") ? backend("onednn") : backend("reference");
  Network whole(model, *device, samples);
  initialise_off_kinks(whole, 3);
  CutNetwork cut(model, placement);
  CutRun run(device->name(), cut, whole);
  const Batch batch(model, samples);
  whole.forward(batch.images.data(), batch.training());
  whole.backward();
  EXPECT_NEAR(run.run(batch), whole.loss(), 1e-4 * std::abs(whole.loss()));
  for (const Parameter& parameter : whole.parameters()) {
    const std::vector<float> wanted = values_of(*device, parameter.gradient);
    if (bits) {
      ASSERT_EQ(run.gradient(parameter), wanted) << parameter.name;
      continue;
    }
    // Normalisation of a few values makes roundings larger.
    const std::vector<float> values = run.gradient(parameter);
    double square = 0.0, error = 0.0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      square += double{wanted[i]} * wanted[i];
      error += std::pow(double{values[i]} - wanted[i], 2);
    }
    ASSERT_LE(std::sqrt(error), 2e-2 * std::sqrt(square) + 1e-6) << parameter.name;
  }
}

TEST(CutModels, HaveTheSameBitsInStages) {
  for (const Model& model : networks()) {
    SCOPED_TRACE(model.title());
    const Units units(model);
    for (const int ranks : {2, 5}) compare(model, drawn_stages(units, samples, ranks, 7), true);
  }
}

TEST(CutModels, AgreeByChannels) {
  for (const Model& model : networks()) {
    SCOPED_TRACE(model.title());
    const Units units(model);
    for (const int ranks : {2, 3})
      compare(model, drawn_placement(units, samples, ranks, false, 9), false);
  }
}

}  // namespace
}  // namespace duplex::test
