// Tests that the parts of a network, however it is cut, compute together what the whole one does.
#include "layers/parts/cut_network.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/layers/parts/placements.h"
#include "tests/layers/parts/run_parts.h"

namespace duplex::test {
namespace {

constexpr std::int64_t samples = 6;

/// Two steps' worth of a network that is cut, beside the whole one.
void expect_same(const std::string& backend_name, const Model& model, const Placement& placement,
                 bool bits) {
  const auto device = backend(backend_name);
  Network whole(model, *device, samples);
  initialise_off_kinks(whole, 3);
  CutNetwork cut(model, placement);
  SCOPED_TRACE(text_of(placement, cut.units()));
  CutRun run(backend_name, cut, whole);
  for (std::uint64_t micro_batch = 0; micro_batch < 2; ++micro_batch) {
    const Batch batch(model, samples, 11 + micro_batch);
    whole.forward(batch.images.data(), batch.training());
    whole.backward();
    const double loss = run.run(batch, micro_batch);
    EXPECT_NEAR(loss, whole.loss(), 1e-5 * std::abs(whole.loss()));
    for (const Parameter& parameter : whole.parameters()) {
      const std::vector<float> wanted = values_of(*device, parameter.gradient);
      if (bits)
        EXPECT_EQ(run.gradient(parameter), wanted) << parameter.name;
      else
        expect_near(run.gradient(parameter), wanted, parameter.name);
    }
  }
  std::size_t elements = 0;
  for (const MapTransfer& transfer : cut.transfers())
    elements += transfer.elements * (transfer.gradient ? 2 : 1);
  EXPECT_EQ(run.maps().bytes(), 2 * elements * sizeof(float));
  EXPECT_EQ(run.maps().left(), 0U);
}

/// On a GPU, received maps are plain, where those that a layer computes may not be.
bool keeps_bits(const std::string& backend_name) {
  return backend_name.find("cudnn") == std::string::npos;
}

using CutNetworks = OnEveryBackend;

TEST_P(CutNetworks, StagesHaveTheBitsOfOneMachine) {
  const Model model = all_kinds();
  const Units units(model);
  for (const int ranks : {2, 3, 5})
    for (std::uint64_t seed = 1; seed <= 4; ++seed)
      expect_same(GetParam(), model, drawn_stages(units, samples, ranks, seed),
                  keeps_bits(GetParam()));
  // A stage for each unit.
  expect_same(GetParam(), model, drawn_stages(units, samples, static_cast<int>(units.count()), 1),
              keeps_bits(GetParam()));
}

TEST_P(CutNetworks, AnyChannelsAnywhere) {
  const Model model = all_kinds();
  for (const int ranks : {2, 4})
    for (std::uint64_t seed = 1; seed <= 5; ++seed)
      expect_same(GetParam(), model, drawn_placement(Units(model), samples, ranks, false, seed),
                  false);
}

TEST_P(CutNetworks, AnyTilesAnywhere) {
  const Model model = by_sample();
  for (const int ranks : {2, 3})
    for (std::uint64_t seed = 1; seed <= 8; ++seed)
      expect_same(GetParam(), model, drawn_placement(Units(model), samples, ranks, true, seed),
                  false);
}

INSTANTIATE_TEST_SUITE_P(Backends, CutNetworks, every_backend(),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace duplex::test
