// Tests that a network runs repeatably, layer by layer, in training and in evaluation, and tests
// what it refuses.
#include "layers/network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/error.h"
#include "layers/exchange/local_exchange.h"
#include "layers/kinds/linear.h"
#include "tests/layers/devices.h"
#include "tests/layers/small_networks.h"
#include "tests/layers/train_step.h"

namespace duplex {
namespace {

using test::Batch;

constexpr std::int64_t batch_size = 4;

class NetworkRuns : public test::OnEveryBackend {
 protected:
  std::vector<float> outputs(const Network& network) const {
    std::vector<float> values(
        static_cast<std::size_t>(network.batch() * network.model().classes()));
    network.outputs(values.data());
    return values;
  }
};

TEST_P(NetworkRuns, TwiceWithOneSeedToTheSameBits) {
  device = test::backend(GetParam(), 2);
  const auto run = [&] {
    Network network(test::all_kinds(), *device, batch_size);
    OptimiserSpec spec;
    spec.momentum = 0.9F;
    LocalExchange exchange(network, spec, {0.01, {}, 0.1, 0});
    const Batch batch(network.model(), batch_size);
    network.initialise(3);
    for (std::uint64_t step = 0; step < 4; ++step) {
      exchange.begin(step);
      ForwardContext context = batch.training();
      context.first_sample = step * static_cast<std::uint64_t>(batch_size);
      test::forward_and_backward(network, batch.images.data(), context, exchange);
      exchange.end();
    }
    return test::state_of(network);
  };
  const auto first = run(), second = run();
  EXPECT_TRUE(first == second);
}

TEST_P(NetworkRuns, UpdatesTogetherWithTheBitsOfUpdatesApart) {
  OptimiserSpec momentum, adam;
  momentum.momentum = 0.9F;
  momentum.weight_decay = 0.01F;
  adam.kind = OptimiserKind::adam;
  for (const OptimiserSpec& spec : {momentum, adam}) {
    const auto run = [&](Updates updates) {
      Network network(test::all_kinds(), *device, batch_size);
      LocalExchange exchange(network, spec, {0.01, {}, 0.1, 0}, updates);
      const Batch batch(network.model(), batch_size);
      network.initialise(3);
      for (std::uint64_t step = 0; step < 3; ++step) {
        exchange.begin(step);
        test::forward_and_backward(network, batch.images.data(), batch.training(), exchange);
        exchange.end();
      }
      return test::state_of(network);
    };
    EXPECT_TRUE(run(Updates::together) == run(Updates::each));
  }
}

TEST_P(NetworkRuns, KeepsWeightsTogetherAndZerosBetweenThem) {
  Network network(test::all_kinds(), *device, batch_size);
  LocalExchange exchange(network, {}, {0.01, {}, 0.1, 0});
  const Batch batch(network.model(), batch_size);
  network.initialise(3);
  exchange.begin(0);
  test::forward_and_backward(network, batch.images.data(), batch.training(), exchange);
  exchange.end();

  auto weights = test::values_of(*device, network.weights());
  auto gradients = test::values_of(*device, network.gradients());
  ASSERT_EQ(weights.size(), gradients.size());
  std::ptrdiff_t end = 0;
  for (const Parameter& parameter : network.parameters()) {
    const std::ptrdiff_t begin = parameter.weights.data - network.weights().data;
    EXPECT_EQ(parameter.gradient.data - network.gradients().data, begin);
    EXPECT_GE(begin, end) << parameter.name;
    EXPECT_EQ(begin * sizeof(float) % 256, 0U);
    end = begin + parameter.weights.stored();
    ASSERT_LE(end, static_cast<std::ptrdiff_t>(weights.size()));
    std::fill(weights.begin() + begin, weights.begin() + end, 0.0F);
    std::fill(gradients.begin() + begin, gradients.begin() + end, 0.0F);
  }
  EXPECT_EQ(weights, std::vector<float>(weights.size()));
  EXPECT_EQ(gradients, weights);
}

TEST_P(NetworkRuns, DrawsParametersWithinTheirBounds) {
  Network network(test::all_kinds(), *device, 1);
  network.initialise(5);
  const auto values = test::state_of(network);
  const std::vector<Parameter*> state = network.state();
  for (std::size_t i = 0; i < state.size(); ++i) {
    const Initial& initial = state[i]->spec.initial;
    std::vector<float> expected(values[i].size(), initial.value);
    draw_initial(state[i]->spec, 5, expected.data());
    EXPECT_EQ(values[i], expected) << state[i]->name;
    if (initial.bound == 0.0F) continue;
    double squares = 0.0;
    for (float value : values[i]) {
      EXPECT_LE(std::abs(value), initial.bound);
      squares += double{value} * double{value};
    }
    if (values[i].size() < 100) continue;  // These are too few for a variance.
    const double variance = squares / static_cast<double>(values[i].size());
    EXPECT_NEAR(variance, double{initial.bound} * double{initial.bound} / 3.0, variance * 0.2)
        << state[i]->name;
  }
}

TEST_P(NetworkRuns, TheObserverSeesEveryLayerOnceAPhase) {
  Network network(test::all_kinds(), *device, batch_size);
  const Batch batch(network.model(), batch_size);
  network.initialise(1);
  std::vector<std::size_t> forward, backward;
  std::int64_t clock = 0;
  network.observe([&](std::size_t node, Phase phase, std::int64_t begin, std::int64_t end) {
    (phase == Phase::forward ? forward : backward).push_back(node);
    EXPECT_LE(clock, begin);
    EXPECT_LE(begin, end);
    clock = end;
  });
  const std::size_t layers = network.model().nodes().size() - 1;
  network.forward(batch.images.data(), batch.training());
  ASSERT_EQ(forward.size(), layers);
  EXPECT_TRUE(backward.empty());
  network.backward();
  ASSERT_EQ(forward.size(), layers);
  ASSERT_EQ(backward.size(), layers);
  for (std::size_t i = 0; i < layers; ++i) {
    EXPECT_EQ(forward[i], i + 1);
    EXPECT_EQ(backward[i], layers - i);
  }
}

TEST_P(NetworkRuns, LayersOfTrainingOnlyRestInEvaluation) {
  Network network(test::all_kinds(), *device, batch_size);
  const Batch batch(network.model(), batch_size);
  network.initialise(1);
  std::set<std::size_t> seen;
  network.observe([&](std::size_t node, Phase, std::int64_t, std::int64_t) { seen.insert(node); });
  network.forward(batch.images.data(), batch.evaluation());
  int resting = 0;
  for (std::size_t node = 1; node < network.model().nodes().size(); ++node) {
    const Model::Entry& entry = network.model().nodes()[node];
    EXPECT_EQ(seen.count(node), entry.training_only ? 0U : 1U) << entry.name;
    resting += entry.training_only;
  }
  EXPECT_EQ(resting, 9);
}

TEST_P(NetworkRuns, HelpersCountInTheLossOfTrainingAlone) {
  // Without dropout and batch normalisation, training and evaluation have the same main loss.
  constexpr float weight = 0.25F;
  Model net("Helped", {1, 2, 6, 6});
  const auto x = net.conv("conv", net.input(), 4, same(3));
  net.training_only(true);
  net.softmax("helper", net.linear("helper_fc", x, 3, false), weight);
  net.training_only(false);
  net.softmax("softmax", net.linear("fc", x, 3, false));
  Network network(net, *device, batch_size);
  const Batch batch(net, batch_size);
  network.initialise(1);

  network.forward(batch.images.data(), batch.evaluation());
  const double main = network.loss();
  double expected = 0.0;
  const std::vector<float> probabilities = outputs(network);
  for (std::size_t i = 0; i < batch.labels.size(); ++i) {
    const auto label = static_cast<std::size_t>(batch.labels[i]);
    expected -= std::log(double{probabilities[3 * i + label]}) / double{batch_size};
  }
  EXPECT_NEAR(main, expected, 1e-6);

  // With weights of zero the auxiliary classifier gives each of the three classes a third.
  Parameter& helper = network.parameters()[2];
  ASSERT_EQ(helper.name, "helper_fc.weight");
  device->fill(helper.weights, 0.0F);
  network.forward(batch.images.data(), batch.training());
  EXPECT_NEAR(network.loss(), main + double{weight} * std::log(3.0), 1e-6);
  network.backward();
  EXPECT_NEAR(network.loss(), main + double{weight} * std::log(3.0), 1e-6);
}

TEST_P(NetworkRuns, EvaluationChangesNothingAndNeedsLessMemory) {
  Network training(test::all_kinds(), *device, batch_size);
  Network inference(test::all_kinds(), *device, batch_size, false);
  const Batch batch(training.model(), batch_size);
  for (Network* network : {&training, &inference}) network->initialise(1);
  training.forward(batch.images.data(), batch.training());
  const auto state = test::state_of(training);
  for (std::size_t i = 0; i < state.size(); ++i) {
    device->upload(inference.state()[i]->weights, state[i].data());
  }
  for (Network* network : {&training, &inference}) {
    network->forward(batch.images.data(), batch.evaluation());
  }
  EXPECT_EQ(test::state_of(training), state);
  EXPECT_EQ(outputs(training), outputs(inference));
  EXPECT_LT(inference.arena_bytes(), training.arena_bytes() / 2);

  // Dropout passes on what it gets, and batch normalisation no longer looks at the batch, so that a
  // second evaluation gives the same, whatever the seed.
  const std::vector<float> once = outputs(training);
  ForwardContext other = batch.evaluation();
  other.seed = 99;
  training.forward(batch.images.data(), other);
  EXPECT_EQ(outputs(training), once);
}

TEST_P(NetworkRuns, BatchNormalisationKeepsRunningStatisticsOfItsInput) {
  Model net("Normalised", {1, 2, 5, 4});
  const auto x = net.batch_norm("bn", net.input(), false);
  net.softmax("softmax", net.linear("fc", x, 3, false));
  Network network(net, *device, batch_size);
  const Batch batch(net, batch_size);
  network.initialise(1);
  network.forward(batch.images.data(), batch.training());
  ASSERT_EQ(network.statistics().size(), 2U);
  const auto mean = test::values_of(*device, network.statistics()[0].weights);
  const auto variance = test::values_of(*device, network.statistics()[1].weights);
  for (std::size_t c = 0; c < 2; ++c) {
    double sum = 0.0, squares = 0.0;
    constexpr std::size_t map = 20, count = map * 4;
    for (std::size_t n = 0; n < 4; ++n) {
      for (std::size_t i = 0; i < map; ++i) {
        const double value = double{batch.images[(n * 2 + c) * map + i]};
        sum += value;
        squares += value * value;
      }
    }
    const double average = sum / count;
    const double unbiased = (squares - sum * average) / (count - 1);
    EXPECT_NEAR(double{mean[c]}, 0.1 * average, 1e-6);
    EXPECT_NEAR(double{variance[c]}, 0.9 + 0.1 * unbiased, 1e-6);
  }
}

/// Dropout draws by sample, so that a batch can be cut anywhere.
TEST_P(NetworkRuns, ASamplesResultDoesNotDependOnItsBatch) {
  Network whole(test::by_sample(), *device, 4), half(test::by_sample(), *device, 2);
  const Batch batch(whole.model(), 4);
  whole.initialise(1);
  half.initialise(1);
  constexpr std::uint64_t first = 12;
  ForwardContext context = batch.training();
  context.first_sample = first;
  whole.forward(batch.images.data(), context);
  whole.backward();
  const auto expected = test::gradients_of(whole);
  const std::vector<float> expected_outputs = outputs(whole);

  std::vector<std::vector<float>> sum;
  std::vector<float> joined;
  double loss = 0.0;
  for (std::size_t part = 0; part < 2; ++part) {
    context.first_sample = first + 2 * part;
    context.labels = batch.labels.data() + 2 * part;
    half.forward(batch.images.data() + part * (batch.images.size() / 2), context);
    half.backward();
    loss += half.loss() / 2.0;
    for (float value : outputs(half)) joined.push_back(value);
    const auto gradients = test::gradients_of(half);
    if (sum.empty()) sum.resize(gradients.size());
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      sum[i].resize(gradients[i].size());
      for (std::size_t k = 0; k < sum[i].size(); ++k) sum[i][k] += gradients[i][k] / 2.0F;
    }
  }
  EXPECT_NEAR(loss, whole.loss(), 1e-6);
  for (std::size_t i = 0; i < joined.size(); ++i) EXPECT_NEAR(joined[i], expected_outputs[i], 1e-6);
  for (std::size_t i = 0; i < sum.size(); ++i) {
    for (std::size_t k = 0; k < sum[i].size(); ++k) {
      ASSERT_NEAR(sum[i][k], expected[i][k], 1e-5) << whole.parameters()[i].name << " " << k;
    }
  }

  // Dropout draws other masks for other samples.
  context.first_sample = first + 4;
  context.labels = batch.labels.data();
  whole.forward(batch.images.data(), context);
  EXPECT_NE(outputs(whole), expected_outputs);
}

/// Records the calls, in order.
class Recorder final : public Exchange {
 public:
  void begin(std::uint64_t) override {}
  void await(std::size_t parameter) override { calls.emplace_back("await", parameter); }
  void push(std::size_t parameter) override { calls.emplace_back("push", parameter); }
  void end() override {}

  std::vector<std::pair<std::string, std::size_t>> calls;
};

TEST_P(NetworkRuns, AwaitsBeforeALayerAndPushesAfterIt) {
  Network network(test::all_kinds(), *device, batch_size);
  const Batch batch(network.model(), batch_size);
  network.initialise(1);
  Recorder exchange;
  network.observe([&](std::size_t node, Phase phase, std::int64_t, std::int64_t) {
    exchange.calls.emplace_back(phase == Phase::forward ? "forward" : "backward", node);
  });
  test::forward_and_backward(network, batch.images.data(), batch.training(), exchange);

  std::map<std::pair<std::string, std::size_t>, std::size_t> at;
  for (std::size_t i = 0; i < exchange.calls.size(); ++i) {
    EXPECT_TRUE(at.emplace(exchange.calls[i], i).second)
        << exchange.calls[i].first << " " << exchange.calls[i].second << " twice";
  }
  const std::size_t layers = network.model().nodes().size() - 1;
  EXPECT_EQ(exchange.calls.size(), 2 * layers + 2 * network.parameters().size());
  for (std::size_t p = 0; p < network.parameters().size(); ++p) {
    const std::size_t node = network.parameters()[p].node;
    const std::size_t awaited = at.at({"await", p}), pushed = at.at({"push", p});
    EXPECT_LT(awaited, at.at({"forward", node}));
    if (node > 1) {
      EXPECT_GT(awaited, at.at({"forward", node - 1})) << "no earlier than needed";
      EXPECT_LT(pushed, at.at({"backward", node - 1})) << "as soon as it exists";
    }
    EXPECT_GT(pushed, at.at({"backward", node}));
  }
}

TEST_P(NetworkRuns, AParameterThatNoLossSeesHasAGradientOfZero) {
  Model net("Idle", {1, 2, 6, 6});
  const auto x = net.conv("conv", net.input(), 3, same(3));
  net.linear("idle", x, 4, true);
  net.softmax("softmax", net.linear("fc", x, 3, false));
  Network network(net, *device, batch_size);
  const Batch batch(net, batch_size);
  network.initialise(1);
  network.forward(batch.images.data(), batch.training());
  network.backward();
  const auto gradients = test::gradients_of(network);
  ASSERT_EQ(network.parameters()[2].name, "idle.weight");
  EXPECT_EQ(gradients[2], std::vector<float>(gradients[2].size(), 0.0F));
  EXPECT_NE(gradients[0], std::vector<float>(gradients[0].size(), 0.0F));
}

TEST_P(NetworkRuns, RefusesABackwardThatNothingPrepared) {
  Network network(test::by_sample(), *device, batch_size);
  const Batch batch(network.model(), batch_size);
  network.initialise(1);
  EXPECT_THROW(network.backward(), Error);
  network.forward(batch.images.data(), batch.evaluation());
  EXPECT_THROW(network.backward(), Error);
  network.forward(batch.images.data(), batch.training());
  network.backward();
  EXPECT_THROW(network.backward(), Error) << "activations are overwritten by then";
  network.begin_forward(batch.images.data(), batch.training());
  network.forward_layer(0);
  EXPECT_THROW(network.backward(), Error) << "the forward has not come to its end";

  Network inference(test::by_sample(), *device, batch_size, false);
  inference.initialise(1);
  inference.forward(batch.images.data(), batch.training());
  EXPECT_THROW(inference.backward(), Error);
}

INSTANTIATE_TEST_SUITE_P(Backends, NetworkRuns, test::every_backend(),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace duplex
