#include "tools/planning/floor.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include "tools/planning/step_bytes.h"

namespace duplex::tools {
namespace {

double slowness(const simulation::Spec& spec, int rank) {
  return spec.straggler_factor ? spec.straggler_factor(rank, 0) : 1.0;
}

/// Seconds of a micro-batch on the ranks before one: from where a step begins until the first map
/// can reach it, and from its last gradient of a map to where the step has been computed.
struct Before {
  double forward = 0.0, backward = 0.0;
};

/// Returns them by rank; zeros where maps go from a later rank to an earlier one, too.
std::vector<Before> before_ranks(const simulation::Spec& spec) {
  const simulation::CutRun& cut = *spec.cut;
  std::vector<Before> before(cut.parts.size());
  const bool onward = std::all_of(cut.routes.begin(), cut.routes.end(),
                                  [](const net::MapRoute& route) { return route.from < route.to; });
  if (!onward) return before;
  constexpr double none = std::numeric_limits<double>::infinity();
  // The earliest of several routes to a rank counts, so that the bound holds in any case.
  std::vector<Before> earliest(cut.parts.size(), Before{none, none});
  for (std::size_t rank = 0; rank < cut.parts.size(); ++rank) {
    if (earliest[rank].forward < none) before[rank].forward = earliest[rank].forward;
    if (earliest[rank].backward < none) before[rank].backward = earliest[rank].backward;
    const double factor = slowness(spec, static_cast<int>(rank));
    Before here = before[rank];
    for (const simulation::PartLayer& layer : cut.parts[rank].layers) {
      here.forward += layer.forward * factor;
      here.backward += layer.backward * factor;
      for (const std::size_t number : layer.sends) {
        const net::MapRoute& route = cut.routes[number];
        Before& there = earliest[static_cast<std::size_t>(route.to)];
        there.forward = std::min(there.forward, here.forward);
        if (route.gradient) there.backward = std::min(there.backward, here.backward);
      }
    }
  }
  return before;
}

double computing_of_cut(const simulation::Spec& spec, bool pipeline) {
  const simulation::CutRun& cut = *spec.cut;
  std::vector<Before> before(cut.parts.size());
  if (pipeline) before = before_ranks(spec);
  double most = 0.0;
  for (std::size_t rank = 0; rank < cut.parts.size(); ++rank) {
    double own = 0.0;
    for (const simulation::PartLayer& layer : cut.parts[rank].layers)
      own += simulation::step_seconds(layer, cut.micro_batches);
    own *= slowness(spec, static_cast<int>(rank));
    most = std::max(most, own + before[rank].forward + before[rank].backward);
  }
  return most;
}

double computing(const simulation::Spec& spec) {
  if (!spec.slots.empty()) return 0.0;
  double batch = 0.0, most = 0.0;
  for (const simulation::Layer& layer : spec.layers) batch += layer.forward + layer.backward;
  for (const int rank : spec.topology.workers()) {
    const auto worker = static_cast<std::size_t>(spec.topology.worker_number(rank));
    most = std::max(most, batch * spec.part[worker] * slowness(spec, rank));
  }
  return most;
}

/// Links that differ are taken for the fastest, since the bytes are the most of any worker.
double carrying(const Strategy& strategy, const simulation::Spec& spec) {
  const StepBytes bytes = step_bytes(strategy, spec);
  const double fastest = *std::max_element(spec.rates.begin(), spec.rates.end());
  const double most =
      std::max({bytes.worker_out, bytes.worker_in, bytes.server_out, bytes.server_in});
  // A shaped link lets so many bytes pass at once, beside its rate.
  return std::max(0.0, most - spec.burst) / fastest;
}

}  // namespace

double image_floor(const Situation& situation, const Strategy& strategy,
                   const simulation::Spec& spec) {
  const ParallelSpec& parallel = strategy.parallel;
  if (parallel.sync == net::Sync::none || parallel.average > 0 || situation.varies) return 0.0;
  const double computed =
      spec.cut ? computing_of_cut(spec, parallel.strategy == "pipeline") : computing(spec);
  const auto images =
      static_cast<double>(situation.scenario.batch) * parallel.batches_a_step(strategy.workers());
  return std::max(computed, carrying(strategy, spec)) / images;
}

}  // namespace duplex::tools
