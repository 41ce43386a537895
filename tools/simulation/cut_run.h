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
  std::vector<std::size_t> awaits;   ///< Parameters, as the wire counts them, that forward needs.
  std::vector<std::size_t> pushes;   ///< Those whose gradients the last backward completes.
  std::vector<std::size_t> sends;    ///< Routes on which maps leave after forward.
  std::vector<std::size_t> returns;  ///< Routes on which gradients of maps leave after backward.
};

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
