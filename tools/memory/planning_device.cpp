#include "tools/memory/planning_device.h"

#include <sys/mman.h>

#include <algorithm>

#include "core/error.h"

namespace duplex::tools {

Buffer PlanningDevice::allocate(std::size_t bytes) {
  const std::size_t size = std::max<std::size_t>(bytes, 1);
  void* const addresses =
      ::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (addresses == MAP_FAILED)
    throw Error("there are no addresses for " + std::to_string(bytes >> 20) + " MiB");
  return {addresses, bytes, [size](void* data) { ::munmap(data, size); }};
}

void PlanningDevice::begin_layer(const std::string& name) {
  layers_.emplace_back(name, inner().operation_memory().kept);
}

std::vector<std::pair<std::string, std::size_t>> PlanningDevice::kept_by_layer() const {
  std::vector<std::pair<std::string, std::size_t>> kept = layers_;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const std::size_t after =
        i + 1 < kept.size() ? layers_[i + 1].second : inner().operation_memory().kept;
    kept[i].second = after - layers_[i].second;
  }
  return kept;
}

void PlanningDevice::refuse() {
  throw Error("a device to plan with has no memory to compute in");
}

}  // namespace duplex::tools
