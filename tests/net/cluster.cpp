#include "tests/net/cluster.h"

namespace duplex::net {

Replica::Replica(const std::vector<std::size_t>& counts) {
  for (const std::size_t count : counts) {
    weights.emplace_back(count, 0.0F);
    gradients.emplace_back(count, 0.0F);
  }
}

void Replica::set_initial() {
  for (std::size_t p = 0; p < weights.size(); ++p)
    RandomStream(1, p).fill_uniform(weights[p].data(), weights[p].size());
}

void Replica::compute(std::size_t p, int worker, std::uint64_t step) {
  const RandomStream noise(2, p, static_cast<std::uint32_t>(worker));
  std::vector<float>& gradient = gradients[p];
  noise.fill_uniform(gradient.data(), gradient.size(), step * gradient.size());
  for (std::size_t i = 0; i < gradient.size(); ++i)
    gradient[i] = (gradient[i] - 0.5F) * 10.0F + 0.1F * weights[p][i];
}

std::vector<Span> Replica::spans() {
  std::vector<Span> spans;
  for (std::size_t p = 0; p < weights.size(); ++p)
    spans.push_back(
        {"p" + std::to_string(p), weights[p].size(), weights[p].data(), gradients[p].data()});
  return spans;
}

std::vector<std::vector<float>> train_alone(const std::vector<std::size_t>& counts, int workers,
                                            std::uint64_t steps, const OptimiserSpec& optimiser,
                                            const LearningRate& rate) {
  Replica replica(counts);
  replica.set_initial();
  std::vector<std::vector<std::vector<float>>> state;
  state.reserve(counts.size());
  for (const std::size_t count : counts)
    state.emplace_back(static_cast<std::size_t>(optimiser.states()),
                       std::vector<float>(count, 0.0F));
  for (std::uint64_t step = 0; step < steps; ++step)
    for (std::size_t p = 0; p < counts.size(); ++p) {
      std::vector<float> sum;
      for (int worker = 0; worker < workers; ++worker) {
        replica.compute(p, worker, step);
        if (worker == 0) sum.assign(counts[p], 0.0F);
        for (std::size_t i = 0; i < counts[p]; ++i)
          sum[i] = worker == 0 ? replica.gradients[p][i] : sum[i] + replica.gradients[p][i];
      }
      const float part = 1.0F / static_cast<float>(workers);
      for (float& value : sum) value *= part;
      std::vector<float*> pointers;
      for (std::vector<float>& values : state[p]) pointers.push_back(values.data());
      update({optimiser, rate.at(step), step + 1}, counts[p], replica.weights[p].data(), sum.data(),
             pointers.data());
    }
  return replica.weights;
}

namespace {

/// Trains a worker's batch of a step.
void train_step(ParameterExchange& exchange, Replica& replica, int worker, std::uint64_t step) {
  exchange.begin(exchange.next_step());
  for (std::size_t p = 0; p < replica.weights.size(); ++p) exchange.await(p);
  for (std::size_t p = replica.weights.size(); p-- > 0;) {
    replica.compute(p, worker, step);
    exchange.push(p);
  }
  exchange.end();
}

}  // namespace

void train(ParameterExchange& exchange, Replica& replica, int worker, std::uint64_t steps) {
  for (std::uint64_t step = 0; step < steps; ++step) train_step(exchange, replica, worker, step);
}

std::uint64_t train_leases(ParameterExchange& exchange, Replica& replica, std::uint64_t steps) {
  std::uint64_t trained = 0;
  while (const auto lease = exchange.next_lease(steps))
    for (std::uint64_t step = lease->steps.first; step < lease->steps.end; ++step, ++trained)
      train_step(exchange, replica, lease->worker, step);
  return trained;
}

}  // namespace duplex::net
