// Training with others equals training alone. Losses and weights of N ranks are compared with those
// of one machine that has the N-fold batch, or that adds up the gradients of N batches, on networks
// with branches, residual additions, dropout, batch normalisation and large linear layers.
#include <gtest/gtest.h>

#include <cmath>
#include <mutex>

#include "core/device.h"
#include "core/gpu/cuda.h"
#include "core/random.h"
#include "layers/exchange/accumulating_exchange.h"
#include "layers/exchange/host_staging.h"
#include "layers/exchange/local_exchange.h"
#include "layers/exchange/strict_exchange.h"
#include "models/registry.h"
#include "net/exchange/exchange.h"
#include "tests/layers/train_step.h"
#include "tests/ranks_in_threads.h"
#include "tools/plan/factored_layers.h"

namespace duplex::tools {
namespace {

constexpr std::uint64_t steps = 3, seed = 7;
constexpr std::int64_t workers = 3, share = 4;  // Samples of each step that a worker has.
using Values = std::vector<std::vector<float>>;

/// The outcome of a training: losses by step, then by part of the batch; trained parameters;
/// running statistics.
struct Outcome {
  std::vector<std::vector<double>> losses;
  Values weights, statistics;
  std::vector<Values> copies;  ///< The weights that each worker has at the end.
};

/// Resnet34's residual blocks, but few and narrow, with both kinds of shortcut.
Model small_resnet(bool batch_norm) {
  Model net("SmallResnet", {1, 3, 16, 16});
  const auto conv = [&](const std::string& name, Model::Node x, std::int64_t filters,
                        std::int64_t stride, bool relu) {
    if (!batch_norm) return net.conv(name, x, filters, same(3, stride), {1, true, relu});
    return net.batch_norm(name + "_bn",
                          net.conv(name, x, filters, same(3, stride), {1, false, false}), relu);
  };
  Model::Node x = conv("conv1", net.input(), 8, 1, true);
  x = net.add("add1", conv("conv3", conv("conv2", x, 8, 1, true), 8, 1, false), x, true);
  const Model::Node padded = net.pad_channels("pad", net.max_pool("pool", x, valid(1, 2)), 12);
  x = net.add("add2", conv("conv5", conv("conv4", x, 12, 2, true), 12, 1, false), padded, true);
  x = net.add("add3", conv("conv6", x, 16, 2, false), conv("shortcut", x, 16, 2, false), true);
  x = net.average_pool("pool2", x, whole_map());
  net.softmax("softmax", net.linear("classifier", x, 5, false));
  return net;
}

/// This is VGG16E, cut down: pairs of convolutions, and three linear layers with most of the
/// weights.
Model small_vgg() {
  Model net("SmallVgg", {1, 3, 16, 16});
  Model::Node x = net.input();
  for (const std::int64_t filters : {8, 16}) {
    const std::string number = std::to_string(filters / 8);
    x = net.conv("conv" + number + "_1", x, filters, same(3));
    x = net.conv("conv" + number + "_2", x, filters, same(3));
    x = net.max_pool("pool" + number, x, valid(2, 2));
  }
  x = net.linear("fc6", x, 96, true);
  x = net.linear("fc7", x, 64, true);
  net.softmax("softmax", net.linear("fc8", x, 5, false));
  return net;
}

OptimiserSpec momentum() {
  OptimiserSpec spec;
  spec.momentum = 0.9F;
  return spec;
}

LearningRate rate() {
  LearningRate rate;
  rate.base = 0.005;
  return rate;
}

/// Images that differ by their number in the whole training.
class Images {
 public:
  Images(const Model& model, std::int64_t first, std::int64_t count) : first_(first) {
    const auto size = static_cast<std::size_t>(model.shape(model.input()).elements());
    for (std::int64_t i = first; i < first + count; ++i) {
      pixels_.resize(pixels_.size() + size);
      RandomStream(11, static_cast<std::uint64_t>(i))
          .fill_uniform(&pixels_[pixels_.size() - size], size);
      labels_.push_back(static_cast<std::int32_t>(i % model.classes()));
    }
  }
  /// Trains one step with these images; returns the loss.
  double train(Network& network, Exchange& exchange, std::uint64_t step) const {
    ForwardContext context;
    context.seed = seed;
    context.first_sample = static_cast<std::uint64_t>(first_);
    context.labels = labels_.data();
    exchange.begin(step);
    test::forward_and_backward(network, pixels_.data(), context, exchange);
    exchange.end();
    return network.loss();
  }

 private:
  std::int64_t first_;
  std::vector<float> pixels_;
  std::vector<std::int32_t> labels_;
};

Values download(Network& network, const std::vector<Parameter>& parameters) {
  Values values;
  for (const Parameter& parameter : parameters) {
    values.emplace_back(static_cast<std::size_t>(parameter.spec.shape.elements()));
    network.device().download(values.back().data(), parameter.weights);
  }
  return values;
}

/// Trains on one machine, in batches of `batch`, with `parts` of them for each update.
Outcome alone(const Model& model, std::int64_t batch, std::int64_t parts, std::uint64_t updates) {
  const auto device = make_device("cpu", 1);
  Network network(model, *device, batch);
  network.initialise(seed);
  LocalExchange local(network, momentum(), rate());
  AccumulatingExchange exchange(network, local, static_cast<std::uint64_t>(parts));
  Outcome outcome;
  for (std::uint64_t update = 0; update < updates; ++update) {
    outcome.losses.emplace_back();
    for (std::int64_t part = 0; part < parts; ++part) {
      const std::int64_t step = static_cast<std::int64_t>(update) * parts + part;
      outcome.losses.back().push_back(
          Images(model, step * batch, batch)
              .train(network, exchange, static_cast<std::uint64_t>(step)));
    }
  }
  outcome.weights = download(network, network.parameters());
  outcome.statistics = download(network, network.statistics());
  return outcome;
}

std::unique_ptr<Device> cpu(int) {
  return make_device("cpu", 1);
}
/// Two workers share a GPU, each with a layout of its own; the one between them has no GPU.
std::unique_ptr<Device> mixed(int worker) {
  return worker == 1 ? cpu(worker) : make_device("cuda", 1, {0, Precision::float32, worker == 2});
}

/// Trains with three workers, each with its part of the batch; the statistics are the first
/// worker's. With `factors` they exchange those of all linear layers.
Outcome together(const Model& model, net::ServerMode mode, std::uint64_t updates,
                 std::unique_ptr<Device> (*device_of)(int worker) = cpu, bool overlap = true,
                 const net::WireFormat& format = {}, bool factors = false) {
  const net::Topology topology{mode, mode == net::ServerMode::central ? 4 : 3, 0};
  Outcome outcome;
  outcome.losses.assign(updates, std::vector<double>(workers));
  outcome.copies.resize(workers);
  const std::vector<Model::Linear> factored =
      factors ? model.linear_layers() : std::vector<Model::Linear>{};
  std::mutex mutex;
  const auto ends =
      net::run_ranks(topology, [&](int rank, const net::MeshSpec& mesh, net::Listener listener) {
        const bool trains = topology.is_worker(rank);
        const int worker = mode == net::ServerMode::central ? rank - 1 : rank;
        HostParameters host(model, trains, factored, share);
        host.fill(model, seed, "", [](const ParameterSpec&, const float*) {});
        net::ExchangeSpec spec;
        spec.optimiser = momentum();
        spec.rate = rate();
        spec.wire = format;
        spec.last_step = updates;
        spec.factored = of_exchange(factored, std::vector<std::size_t>(workers, share));
        net::ParameterExchange wire(spec, host.spans(), net::Mesh::join(mesh, std::move(listener)));
        if (!trains) {
          wire.finish();
          return;
        }
        const auto device = device_of(worker);
        Network network(model, *device, share);
        network.initialise(seed);
        HostStaging direct(network, host, wire);
        StrictExchange strict(direct, host.spans().size());
        Exchange& exchange = overlap ? static_cast<Exchange&>(direct) : strict;
        std::vector<double> losses;
        for (std::uint64_t step = 0; step < updates; ++step) {
          const std::int64_t first = (static_cast<std::int64_t>(step) * workers + worker) * share;
          losses.push_back(Images(model, first, share).train(network, exchange, step));
        }
        wire.finish();
        const std::lock_guard<std::mutex> lock(mutex);
        for (std::uint64_t step = 0; step < updates; ++step)
          outcome.losses[step][static_cast<std::size_t>(worker)] = losses[step];
        for (const Span& span : host.spans())
          outcome.copies[static_cast<std::size_t>(worker)].emplace_back(span.weights,
                                                                        span.weights + span.count);
        if (worker == 0) outcome.statistics = download(network, network.statistics());
      });
  for (const net::Outcome& end : ends) EXPECT_TRUE(end.ok) << end.message;
  for (const Values& copy : outcome.copies) EXPECT_EQ(copy, outcome.copies.front());
  outcome.weights = outcome.copies.front();
  return outcome;
}

/// The norm of a - b over all parameters together.
double distance(const Values& a, const Values& b) {
  if (a.size() != b.size()) return INFINITY;
  double sum = 0.0;
  for (std::size_t p = 0; p < a.size(); ++p) {
    for (std::size_t i = 0; i < a[p].size(); ++i)
      sum += std::pow(double{a[p][i]} - double{b[p][i]}, 2);
  }
  return std::sqrt(sum);
}

double mean(const std::vector<double>& values) {
  double sum = 0.0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

/// Expects the same bits from both servers, also packed without loss, and from accumulation. The
/// N-fold batch has to give the same but for `rounding`, as a part of the distance that training
/// moves the weights; 0: it is not compared.
void compare(const Model& model, double rounding, std::uint64_t updates = steps) {
  const Outcome distributed = together(model, net::ServerMode::distributed, updates);
  const Outcome central = together(model, net::ServerMode::central, updates);
  const Outcome accumulated = alone(model, share, workers, updates);
  EXPECT_EQ(distributed.weights, central.weights);
  EXPECT_EQ(distributed.losses, central.losses);
  EXPECT_EQ(distributed.weights, accumulated.weights);
  EXPECT_EQ(distributed.losses, accumulated.losses);
  for (const net::ServerMode mode : {net::ServerMode::distributed, net::ServerMode::central}) {
    const Outcome packed =
        together(model, mode, updates, cpu, true, {net::Coding::lossless, net::Coding::lossless});
    EXPECT_EQ(packed.weights, accumulated.weights) << net::name_of(mode);
    EXPECT_EQ(packed.losses, accumulated.losses) << net::name_of(mode);
  }
  if (rounding == 0.0) return;
  const Outcome whole = alone(model, share * workers, 1, updates);
  const double way = distance(alone(model, share, 1, 0).weights, whole.weights);
  EXPECT_LT(distance(whole.weights, distributed.weights), rounding * way);
  for (std::uint64_t step = 0; step < updates; ++step)
    EXPECT_NEAR(mean(distributed.losses[step]), whole.losses[step][0],
                rounding * whole.losses[step][0])
        << step;
}

TEST(Equality, Resnet) {
  compare(small_resnet(false), 1e-4);
}

/// Factors change the order of the sums over samples, and so only the rounding.
TEST(Equality, VggAlsoWithFactors) {
  const Model model = small_vgg();
  compare(model, 1e-4);
  const Outcome accumulated = alone(model, share, workers, steps);
  const double way = distance(alone(model, share, 1, 0).weights, accumulated.weights);
  const auto factored = [&](const net::WireFormat& format) {
    return together(model, net::ServerMode::distributed, steps, cpu, true, format, true);
  };
  const Outcome plain = factored({});
  EXPECT_LT(distance(plain.weights, accumulated.weights), 1e-5 * way);
  EXPECT_NE(plain.weights, accumulated.weights) << "factors were off";
  EXPECT_EQ(factored({}).weights, plain.weights);
  const Outcome packed = factored({net::Coding::lossless, net::Coding::lossless});
  EXPECT_EQ(packed.weights, plain.weights);
  EXPECT_EQ(packed.losses, plain.losses);
}

TEST(Equality, GoogLeNetWithDropoutAndAuxiliaryClassifiers) {
  models::ModelOptions options;
  options.classes = 5;
  options.input = 80;
  options.auxiliary = true;
  // Rounding carries a few activations of the deep layers over a kink, and each of these changes a
  // 300th of the gradient. Dropout by rank instead of by sample would make a difference of 0.6.
  compare(models::build("googlenet", options), 0.02, 1);
}

TEST(Equality, BatchNormalisationNormalisesEachWorkersBatch) {
  const Model model = small_resnet(true);
  compare(model, 0.0);
  // So this is a different training than with all batches in one.
  const Outcome distributed = together(model, net::ServerMode::distributed, steps);
  const Values whole = alone(model, share * workers, 1, steps).weights;
  const double way = distance(alone(model, share, 1, 0).weights, whole);
  EXPECT_GT(distance(whole, distributed.weights), 0.05 * way);
}

TEST(Equality, RunningStatisticsAreThoseOfTheWorkersOwnBatches) {
  const Model model = small_resnet(true);
  const Outcome distributed = together(model, net::ServerMode::distributed, 1);
  EXPECT_EQ(distributed.statistics, together(model, net::ServerMode::central, 1).statistics);
  // The first worker has seen the first part of the step, and none of the others' parts.
  EXPECT_EQ(distributed.statistics, alone(model, share, 1, 1).statistics);
  EXPECT_NE(distributed.statistics, alone(model, share * workers, 1, 1).statistics);
}

class EqualityOnAGpu : public ::testing::TestWithParam<bool> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(EqualityOnAGpu);

TEST_P(EqualityOnAGpu, BesideARankWithout) {
  const bool overlap = GetParam();
  const Model model = small_resnet(false);
  const Outcome expected = alone(model, share, workers, steps);
  const double way = distance(alone(model, share, 1, 0).weights, expected.weights);
  for (const net::ServerMode mode : {net::ServerMode::distributed, net::ServerMode::central}) {
    const Outcome actual = together(model, mode, steps, mixed, overlap);
    EXPECT_LT(distance(actual.weights, expected.weights), 1e-4 * way);
    for (std::uint64_t step = 0; step < steps; ++step)
      EXPECT_NEAR(mean(actual.losses[step]), mean(expected.losses[step]), 1e-5) << step;
  }
}

INSTANTIATE_TEST_SUITE_P(Gpu, EqualityOnAGpu,
                         ::testing::ValuesIn(has_cuda_device() ? std::vector<bool>{true, false}
                                                               : std::vector<bool>{}),
                         [](const auto& info) { return info.param ? "overlap" : "strict"; });

}  // namespace
}  // namespace duplex::tools
