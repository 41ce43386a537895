#include "tools/training/random_steps.h"

#include "core/clock.h"
#include "core/random.h"
#include "layers/exchange/local_exchange.h"
#include "tools/training/loop.h"
#include "tools/training/network_computation.h"

namespace duplex::tools {

RandomSteps time_random_steps(Network& network, int warm_up,
                              const std::function<bool(std::size_t counted)>& enough, bool look) {
  const Shape sample = network.model().entry(0).shape;
  const std::int64_t count = network.batch();
  std::vector<float> images(static_cast<std::size_t>(sample.elements() * count));
  RandomStream(1, stream_of("images")).fill_uniform(images.data(), images.size());
  std::vector<std::int32_t> labels(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < labels.size(); ++i)
    labels[i] = static_cast<std::int32_t>(i % static_cast<std::size_t>(network.model().classes()));
  datasets::Batch batch;
  batch.count = count;
  batch.pixels = images.data();
  batch.labels = labels.data();
  const std::size_t bytes = images.size() * sizeof(float);
  const auto next = [&]() -> const datasets::Batch& {
    batch.first_sample = batch.step++ * static_cast<std::uint64_t>(count);
    return batch;
  };
  NetworkComputation computation(network, {next, bytes, {{images.data(), bytes}}}, 0,
                                 [look](std::uint64_t) { return look; });
  OptimiserSpec optimiser;
  optimiser.momentum = 0.9F;
  LearningRate rate;
  rate.base = 1e-3;
  LocalExchange exchange(network, optimiser, rate);

  RandomSteps steps;
  for (int step = 0; step < warm_up || !enough(steps.seconds.size()); ++step) {
    const std::int64_t begin = clock_ns();
    computation.run(exchange, static_cast<std::uint64_t>(step));
    computation.outcome();
    if (step >= warm_up) steps.seconds.push_back(seconds(clock_ns() - begin));
  }
  steps.on_device = network.device().allocated_bytes();
  return steps;
}

}  // namespace duplex::tools
