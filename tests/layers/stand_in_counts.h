// Reads what the stand-in for a GPU counts.
#pragma once
#include <dlfcn.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "core/gpu/cuda.h"

namespace duplex::test {

/// The stand-in's own counts (tests/stand_in/stand_in.h).
struct Counts {
  long events = 0, spinning_waits = 0, kernels = 0;
  long plans = 0, plans_at_once = 0, graphs = 0, shared_handles = 0;
};

inline Counts counts() {
  void* library = ::dlopen(std::getenv("DUPLEX_CUDNN"), RTLD_NOW | RTLD_NOLOAD);
  auto* count = reinterpret_cast<void (*)(Counts*)>(::dlsym(library, "duplex_stand_in_counts"));
  Counts result;
  count(&result);
  ::dlclose(library);
  return result;
}

/// Returns the description of the stand-in, if the tests run on it.
inline std::vector<std::string> stand_ins() {
  if (!has_cuda_device()) return {};
  const std::string description = make_cuda_device()->description();
  if (description.find("stand-in") == std::string::npos) return {};
  return {description};
}

}  // namespace duplex::test
