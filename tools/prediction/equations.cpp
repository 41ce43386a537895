#include "tools/prediction/equations.h"

#include <algorithm>

namespace duplex::tools {

namespace {

/// The part of float32's bytes that a coding leaves.
double part_of(net::Coding coding, net::Values what, const net::PackedParts& packed) {
  constexpr std::size_t many = 1U << 20U;
  return static_cast<double>(net::expected_bytes(coding, what, many, packed)) /
         static_cast<double>(net::coded_bytes(net::Coding::float32, many));
}

}  // namespace

Costs coded(Costs costs, const net::WireFormat& wire, const net::PackedParts& packed) {
  return factored(costs, wire, packed, 1.0, 0.0, 1.0);
}

Costs factored(Costs costs, const net::WireFormat& wire, const net::PackedParts& packed,
               double left, double factors, double workers) {
  const double weights = part_of(wire.weights, net::Values::weights, packed);
  const double gradients = part_of(wire.gradients, net::Values::gradient, packed);
  costs.comm *= ((weights + gradients) * left + gradients * workers * factors) / 2.0;
  return costs;
}

double sync_central_best(const Costs& costs, double workers) {
  return (workers + 1) * costs.comm + costs.grad;
}

double sync_central_worst(const Costs& costs, double workers) {
  return 2 * workers * costs.comm + costs.grad;
}

double sync_central(const Costs& costs, double workers) {
  return (sync_central_best(costs, workers) + sync_central_worst(costs, workers)) / 2;
}

double sync_distributed(const Costs& costs, double workers) {
  return 2 * costs.comm * (workers - 1) / workers + costs.grad;
}

double async_central_best(const Costs& costs, double workers, double batches) {
  const double by_server = (batches + 1) * costs.comm + costs.grad;
  const double by_workers =
      (workers - 1) * costs.comm + batches / workers * (2 * costs.comm + costs.grad);
  return std::max(by_server, by_workers);
}

double async_central_worst(const Costs& costs, double workers, double batches) {
  return batches / workers * sync_central_worst(costs, workers);
}

double async_central(const Costs& costs, double workers, double batches) {
  return (async_central_best(costs, workers, batches) +
          async_central_worst(costs, workers, batches)) /
         2;
}

double async_distributed(const Costs& costs, double workers, double batches) {
  return batches / workers * sync_distributed(costs, workers);
}

double parallel_seconds(const Costs& costs, net::Sync sync, net::ServerMode server, double workers,
                        double batches) {
  const bool central = server == net::ServerMode::central;
  if (sync == net::Sync::none)
    return central ? async_central(costs, workers, batches)
                   : async_distributed(costs, workers, batches);
  const bool split = sync == net::Sync::split;
  const Costs own{costs.comm, split ? costs.grad / workers : costs.grad};
  const double iteration = central ? sync_central(own, workers) : sync_distributed(own, workers);
  return (split ? batches : batches / workers) * iteration;
}

std::optional<Interval> seconds_between(const Costs& costs, net::Sync sync, net::ServerMode server,
                                        double workers, double batches) {
  if (server != net::ServerMode::central) return std::nullopt;
  if (sync == net::Sync::none)
    return Interval{async_central_best(costs, workers, batches),
                    async_central_worst(costs, workers, batches)};
  const bool split = sync == net::Sync::split;
  const Costs own{costs.comm, split ? costs.grad / workers : costs.grad};
  const double iterations = split ? batches : batches / workers;
  return Interval{iterations * sync_central_best(own, workers),
                  iterations * sync_central_worst(own, workers)};
}

double speedup(const Costs& costs, net::Sync sync, net::ServerMode server, double workers,
               double batches) {
  return batches * costs.grad / parallel_seconds(costs, sync, server, workers, batches);
}

std::optional<Interval> speedup_between(const Costs& costs, net::Sync sync, net::ServerMode server,
                                        double workers, double batches) {
  const auto seconds = seconds_between(costs, sync, server, workers, batches);
  if (!seconds) return std::nullopt;
  const double alone = batches * costs.grad;
  return Interval{alone / seconds->high, alone / seconds->low};
}

double transfer_at_once(const Costs& costs, double workers) {
  return workers * costs.comm;
}

Interval transfer_in_turns(const Costs& costs, double workers) {
  return {costs.comm, transfer_at_once(costs, workers)};
}

}  // namespace duplex::tools
