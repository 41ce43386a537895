#include "tools/slots/slot_places.h"

#include <algorithm>

#include "core/device_name.h"
#include "core/error.h"
#include "core/gpu/cuda.h"
#include "core/processor/cores.h"

namespace duplex::tools {
namespace {

Error too_many(const std::string& command, int slots, const std::string& what) {
  return Error(
      command + ": " + std::to_string(slots) + " slots, but " + what + ": give this machine fewer",
      Exit::usage);
}

}  // namespace

std::string device_behind(const std::string& device, int before) {
  if (device != "cuda" || before == 0) return device;
  const int gpus = cuda_devices();
  return gpus > 1 ? "cuda:" + std::to_string(before % gpus) : device;
}

std::vector<SlotPlace> slot_places(const DeviceSpec& spec, int own, int before, int here,
                                   const std::string& command) {
  std::vector<SlotPlace> places;
  if (is_gpu(spec.device)) {
    const int first = gpu_of(spec.device), gpus = cuda_devices();
    if (gpus > 0 && first + own > gpus)
      throw too_many(
          command, own,
          "this machine has " + std::to_string(gpus) + (gpus == 1 ? " GPU" : " GPUs") +
              (first > 0 ? ", of which they begin with GPU " + std::to_string(first) : ""));
    for (int slot = 0; slot < own; ++slot)
      places.push_back({"cuda:" + std::to_string(first + slot), {}});
    return places;
  }
  const std::vector<int> cores = in_order(own_cores());
  const auto all = static_cast<std::size_t>(std::max(here, before + own));
  if (cores.size() < static_cast<std::size_t>(own))
    throw too_many(command, own,
                   "this process may use " + std::to_string(cores.size()) +
                       (cores.size() == 1 ? " core" : " cores"));
  // More slots than cores are ranks that take turns on them.
  const auto shares =
      cores.size() < all ? std::vector<std::vector<int>>(all) : core_shares(cores, all);
  for (int slot = 0; slot < own; ++slot)
    places.push_back({spec.device, shares[static_cast<std::size_t>(before + slot)]});
  return places;
}

}  // namespace duplex::tools
