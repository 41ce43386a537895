#include "net/exchange_cost.h"

#include <algorithm>
#include <string>
#include <thread>
#include <utility>

#include "core/clock.h"
#include "core/processor_time.h"
#include "net/exchange/exchange.h"

namespace duplex::net {
namespace {

/// A layer's computing, as far as the processors see it.
void rest() {
  std::this_thread::sleep_for(std::chrono::microseconds(300));
}

struct Parameters {
  explicit Parameters(const std::vector<std::size_t>& counts) {
    for (const std::size_t count : counts) {
      weights.emplace_back(count, 0.0F);
      gradients.emplace_back(count, 0.0F);
    }
    for (std::size_t i = 0; i < counts.size(); ++i)
      spans.push_back({std::to_string(i), counts[i], weights[i].data(), gradients[i].data()});
  }

  std::vector<std::vector<float>> weights, gradients;
  std::vector<Span> spans;
};

/// Processor seconds of the same sleeps with no exchange.
double resting(std::size_t parameters) {
  constexpr int steps = 10;
  const double begin = processor_seconds();
  for (int step = 0; step < steps; ++step)
    for (std::size_t i = 0; i < 2 * parameters; ++i) rest();
  return (processor_seconds() - begin) / steps;
}

}  // namespace

ExchangeCost measure_exchange(Mesh mesh, const std::vector<std::size_t>& counts, double seconds_of,
                              std::chrono::milliseconds timeout) {
  constexpr std::uint64_t warm_up = 2, least = 3;
  const bool serves = mesh.rank() == 0;
  Parameters parameters(counts);
  ExchangeSpec spec;
  spec.timeout = timeout;
  const double alone = serves ? 0.0 : resting(counts.size());
  ParameterExchange wire(spec, parameters.spans, std::move(mesh));
  ExchangeCost cost;
  if (!serves) {
    double begin = 0.0;
    std::int64_t since = 0;
    std::uint64_t step = 0;
    for (;; ++step) {
      if (step == warm_up) {
        begin = processor_seconds();
        since = clock_ns();
      }
      if (step >= warm_up + least && seconds(clock_ns() - since) >= seconds_of) break;
      wire.begin(step);
      for (std::size_t p = 0; p < counts.size(); ++p) {
        wire.await(p);
        rest();
      }
      for (std::size_t p = counts.size(); p-- > 0;) {
        rest();
        wire.push(p);
      }
      wire.end();
    }
    const double taken = processor_seconds() - begin;
    cost.step = std::max(taken / static_cast<double>(step - warm_up) - alone, 0.0);
    const ShardMap map = ShardMap::central(counts, 0);
    cost.frames = 2 * map.chunks();
    cost.bytes = map.elements() * sizeof(float);
  }
  wire.await_last_weights();
  wire.finish();
  return cost;
}

}  // namespace duplex::net
