// Tests that ranks which run the parts of a network train it as one machine does.
#include "layers/parts/part_runner.h"

#include <gtest/gtest.h>

#include <cmath>

#include "layers/exchange/accumulating_exchange.h"
#include "layers/exchange/local_exchange.h"
#include "layers/exchange/mean_gradients.h"
#include "tests/layers/parts/placements.h"
#include "tests/layers/parts/run_parts.h"
#include "tests/layers/train_step.h"

namespace duplex::test {
namespace {

constexpr std::uint64_t steps = 4;

OptimiserSpec momentum() {
  OptimiserSpec spec;
  spec.momentum = 0.9F;
  return spec;
}

OptimiserSpec adam() {
  OptimiserSpec spec;
  spec.kind = OptimiserKind::adam;
  spec.weight_decay = 0.01F;
  return spec;
}

LearningRate rate() {
  LearningRate rate;
  rate.base = 0.01;
  return rate;
}

/// The weights and running statistics after some steps, by name, and the steps' losses.
struct Trained {
  std::map<std::string, std::vector<float>> values;
  std::vector<double> losses;
};

struct Training {
  std::string backend;
  std::int64_t samples = 0;  ///< Of a micro-batch.
  std::uint64_t micro_batches = 1;
  OptimiserSpec optimiser;

  Batch batch(const Model& model, std::uint64_t number) const {
    return Batch(model, samples, 100 + number);
  }
  ForwardContext context(const Batch& batch, std::uint64_t number) const {
    ForwardContext context = batch.training();
    context.first_sample = number * static_cast<std::uint64_t>(samples);
    return context;
  }

  Trained alone(const Model& model) const {
    const auto device = test::backend(backend);
    Network network(model, *device, samples);
    network.initialise(5);
    LocalExchange local(network, optimiser, rate());
    AccumulatingExchange exchange(network, local, micro_batches);
    Trained trained;
    double loss = 0;
    for (std::uint64_t number = 0; number < steps * micro_batches; ++number) {
      const Batch own = batch(model, number);
      exchange.begin(number);
      forward_and_backward(network, own.images.data(), context(own, number), exchange);
      exchange.end();
      loss += network.loss() / static_cast<double>(micro_batches);
      if ((number + 1) % micro_batches != 0) continue;
      trained.losses.push_back(loss);
      loss = 0;
    }
    for (const Parameter* parameter : network.state())
      trained.values[parameter->name] = values_of(*device, parameter->weights);
    return trained;
  }

  /// Every rank has `in_flight` micro-batches at a time, fewer by one than the rank before it, and
  /// one at least.
  Trained together(const CutNetwork& cut, int in_flight) const {
    MapExchangeHere maps(cut);
    const auto ranks = static_cast<std::size_t>(cut.placement().ranks);
    std::vector<Trained> parts(ranks);
    in_threads(ranks, maps, [&](std::size_t rank) {
      const int flights = std::max(in_flight - static_cast<int>(rank), 1);
      parts[rank] = run_rank(cut, static_cast<int>(rank), maps, flights);
    });
    Trained all = parts[0];
    for (std::size_t rank = 1; rank < ranks; ++rank)
      for (std::uint64_t step = 0; step < steps; ++step)
        all.losses[step] += parts[rank].losses[step];
    for (std::size_t rank = 1; rank < ranks; ++rank)
      all.values.insert(parts[rank].values.begin(), parts[rank].values.end());
    EXPECT_EQ(maps.left(), 0U);
    return all;
  }

  Trained run_rank(const CutNetwork& cut, int rank, MapExchange& maps, int in_flight) const {
    const auto device = test::backend(backend);
    const NetworkPart part = cut.part(rank);
    const auto networks = networks_of(part, *device, static_cast<std::uint64_t>(in_flight));
    Network& network = *networks.front();
    network.initialise(5);
    std::vector<std::unique_ptr<PartLayers>> slots;
    for (const auto& each : networks) slots.push_back(std::make_unique<NetworkLayers>(*each));
    MeanGradients means(network, micro_batches);
    constexpr std::uint64_t dropout_seed = 7;  // Batch::training() has it, too.
    PartRunner runner(part.model, std::move(slots), micro_batches, dropout_seed,
                      [&](std::size_t p, std::uint64_t number) { return means.add(p, number); });
    LocalExchange exchange(network, optimiser, rate(), Updates::each);
    Trained trained;
    std::uint64_t number = 0;
    std::optional<Batch> own;
    const std::int64_t sample = part.model.shape(part.model.input()).elements();
    const auto source = [&] {
      own.emplace(batch(cut.whole(), number));
      const float* const images =
          part.reads ? own->images.data() + part.first_image * sample : nullptr;
      return MicroBatch{images, own->labels.data(), samples,
                        number++ * static_cast<std::uint64_t>(samples)};
    };
    for (std::uint64_t step = 0; step < steps; ++step)
      trained.losses.push_back(runner.run_step(step, source, exchange, maps));
    for (const Parameter* parameter : network.state()) {
      const RowsOf& rows = parameter->spec.rows;
      trained.values[(rows.parameter.empty() ? parameter->name : rows.parameter) + " " +
                     std::to_string(rows.first)] = values_of(*device, parameter->weights);
    }
    return trained;
  }
};

/// Compares each part of a parameter with the elements that it is of the whole one.
void expect_same(const Trained& parts, const Trained& whole, bool bits) {
  std::size_t compared = 0, all = 0;
  for (const auto& [key, values] : parts.values) {
    const std::string name = key.substr(0, key.find(' '));
    const auto first = static_cast<std::ptrdiff_t>(std::stoll(key.substr(key.find(' '))));
    const auto begin = whole.values.at(name).begin() + first;
    const std::vector<float> wanted(begin, begin + static_cast<std::ptrdiff_t>(values.size()));
    if (bits)
      EXPECT_EQ(values, wanted) << key;
    else
      expect_near(values, wanted, key);
    compared += values.size();
  }
  for (const auto& [name, values] : whole.values) all += values.size();
  EXPECT_EQ(compared, all) << "every element of every parameter lies on one rank";
  ASSERT_EQ(parts.losses.size(), whole.losses.size());
  for (std::size_t step = 0; step < steps; ++step)
    EXPECT_NEAR(parts.losses[step], whole.losses[step], 1e-5 * std::abs(whole.losses[step]));
}

using PartRunners = OnEveryBackend;

TEST_P(PartRunners, PipelinesHaveTheBitsOfAccumulation) {
  const Model model = all_kinds();
  const Units units(model);
  // On a GPU, received maps are plain, where those that a layer computes may not be.
  const bool bits = std::string(GetParam()).find("cudnn") == std::string::npos;
  for (const OptimiserSpec& optimiser : {momentum(), adam()})
    for (const std::uint64_t micro_batches : {1U, 2U, 5U}) {
      if (!bits && micro_batches != 2) continue;
      const Training training{GetParam(), 3, micro_batches, optimiser};
      const Trained alone = training.alone(model);
      for (const int ranks : {2, 4}) {
        const CutNetwork cut(model, drawn_stages(units, 3, ranks, micro_batches));
        for (const int in_flight : {1, ranks}) {
          SCOPED_TRACE(std::to_string(micro_batches) + " micro-batches, " + std::to_string(ranks) +
                       " ranks, in flight " + std::to_string(in_flight));
          expect_same(training.together(cut, in_flight), alone, bits);
        }
      }
    }
}

TEST_P(PartRunners, ChannelsAnywhereTrainAsOneMachine) {
  const Model model = all_kinds();
  const Training training{GetParam(), 6, 3, momentum()};
  const Trained alone = training.alone(model);
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    const CutNetwork cut(model, drawn_placement(Units(model), 6, 3, false, seed));
    expect_same(training.together(cut, 2), alone, false);
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, PartRunners, every_backend(),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace duplex::test
