// A network that is cut over the ranks of a simulated run.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "layers/parts/part_schedule.h"
#include "net/maps/map_route.h"

namespace duplex::tools::simulation {

/// A layer of a rank's part. Times are seconds of a micro-batch.
struct PartLayer {
  int node = -1;  ///< Of the whole network; -1: it sends, receives or puts together.
  double forward = 0.0, backward = 0.0;
  /// Seconds a step to bring its weights to where it computes, and its gradients away from there,
  /// and those a micro-batch to keep its gradients for the sum of all, and to add them to it.
  double upload = 0.0, download = 0.0, keeping = 0.0, adding = 0.0;
  std::vector<std::size_t> awaits;   ///< Parameters, as the wire counts them, that forward needs.
  std::vector<std::size_t> pushes;   ///< Those whose gradients the last backward completes.
  std::vector<std::size_t> sends;    ///< Routes on which maps leave after forward.
  std::vector<std::size_t> returns;  ///< Routes on which gradients of maps leave after backward.
};

/// Returns the seconds of a layer's forward of micro-batch `number`, with all that goes with it.
inline double forward_seconds(const PartLayer& layer, std::uint64_t number) {
  return layer.forward + (number == 0 ? layer.upload : 0.0);
}

/// Returns those of its backward, where a step has so many micro-batches. The mean of all goes back
/// to where the layer computes.
inline double backward_seconds(const PartLayer& layer, std::uint64_t number,
                               std::uint64_t micro_batches) {
  double takes = layer.backward;
  if (micro_batches > 1) takes += number == 0 ? layer.keeping : layer.adding;
  if (number + 1 < micro_batches) return takes;
  return takes + layer.download + (micro_batches > 1 ? layer.upload : 0.0);
}

/// Returns those of all micro-batches.
inline double step_seconds(const PartLayer& layer, std::uint64_t micro_batches) {
  double takes = 0.0;
  for (std::uint64_t number = 0; number < micro_batches; ++number)
    takes += forward_seconds(layer, number) + backward_seconds(layer, number, micro_batches);
  return takes;
}

struct RankPart {
  PartSchedule schedule;
  std::vector<PartLayer> layers;  ///< By node of the part.
};

struct CutRun {
  std::vector<net::MapRoute> routes;
  std::vector<std::vector<int>> members;  ///< The ranks that train with a parameter, by parameter.
  std::vector<std::string> parameters;    ///< The names of the parameters.
  std::uint64_t micro_batches = 1;        ///< Of a step.
  std::vector<RankPart> parts;            ///< By rank.
};

}  // namespace duplex::tools::simulation
