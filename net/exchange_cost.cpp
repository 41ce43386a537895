#include "net/exchange_cost.h"

#include <algorithm>
#include <string>
#include <thread>
#include <utility>

#include "core/clock.h"
#include "core/processor/processor_time.h"
#include "net/exchange/exchange.h"
#include "net/topology/shard_map.h"

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

/// Returns the processor seconds of the same sleeps with no exchange. They count on this thread
/// alone: others of this process may still meet other ranks.
double resting(std::size_t parameters) {
  constexpr int steps = 10;
  const double begin = thread_processor_seconds();
  for (int step = 0; step < steps; ++step)
    for (std::size_t i = 0; i < 2 * parameters; ++i) rest();
  return (thread_processor_seconds() - begin) / steps;
}

/// Counts a step's frames and bytes of a worker.
ExchangeCost traffic_of(const Topology& topology, int rank,
                        const std::vector<std::size_t>& counts) {
  const ShardMap map = topology.shard_map(counts, Shards::even, std::nullopt);
  const std::size_t workers = topology.workers().size();
  ExchangeCost cost;
  for (std::size_t i = 0; i < map.chunks(); ++i) {
    // A worker sends a gradient to another owner and gets weights back; an owner gets gradients
    // from every other worker and sends weights back.
    const bool own = map[i].owner == rank;
    const std::size_t peers = own ? workers - 1 : 1;
    cost.frames += 2 * peers;
    cost.sent += peers * map[i].bytes();
    if (own) cost.applied += workers * map[i].bytes();
  }
  cost.received = cost.sent;
  return cost;
}

}  // namespace

double ExchangeCost::frame(double send, double receive, double rate) const {
  if (frames == 0) return 0.0;
  const double known = static_cast<double>(sent) * send + static_cast<double>(received) * receive +
                       (applied > 0 ? static_cast<double>(applied) / rate : 0.0);
  return std::max(step - known, 0.0) / static_cast<double>(frames);
}

ExchangeCost measure_exchange(Mesh mesh, const std::vector<std::size_t>& counts,
                              const ExchangeLength& length, std::chrono::milliseconds timeout) {
  constexpr std::uint64_t warm_up = 2;
  const Topology topology = mesh.topology();
  const int rank = mesh.rank();
  const bool decides = topology.workers().size() == 1;
  Parameters parameters(counts);
  ExchangeSpec spec;
  spec.timeout = timeout;
  const bool trains = topology.is_worker(rank);
  const double alone = trains ? resting(counts.size()) : 0.0;
  ParameterExchange wire(spec, parameters.spans, std::move(mesh));
  ExchangeCost cost;
  if (trains) {
    cost = traffic_of(topology, rank, counts);
    double begin = 0.0;
    std::int64_t since = 0;
    std::uint64_t step = 0;
    for (;; ++step) {
      if (step == warm_up) {
        begin = processor_seconds();
        since = clock_ns();
      }
      if (step >= warm_up + length.steps &&
          (!decides || seconds(clock_ns() - since) >= length.seconds))
        break;
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
  }
  wire.await_last_weights();
  wire.finish();
  return cost;
}

}  // namespace duplex::net
