// Measures what the layers of parts of a network take on this machine, without others: maps are
// there as soon as they are asked for.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "layers/model.h"
#include "tools/run_directory/part_profile.h"
#include "tools/setup/device_spec.h"

namespace duplex::tools {

struct PartMeasurement {
  DeviceSpec computing;
  std::int64_t batch = 32;  ///< The most samples; fewer are measured, too, down to one.
  int ranks = 2;            ///< Layers are cut by channels over 2, 4 and 8 of them, and not at all.
  double whole = 0.0;  ///< Seconds that all layers of the network take with that batch; 0: unknown.
  double seconds = 5.0;  ///< For all of it. Each part takes three micro-batches, or more.
  std::function<void(const std::string&)> log;  ///< Is told of parts that there is no memory for.
};

/// The whole network with all samples is not among them.
std::vector<PartProfile> measure_parts(const Model& model, const PartMeasurement& spec);

}  // namespace duplex::tools
