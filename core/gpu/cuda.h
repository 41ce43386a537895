// Opens the device of NVIDIA GPUs (core/cudnn), which is a library beside the program. The library
// is loaded only when somebody asks for it, because CUDA's libraries load slowly and may be missing
// where the program runs. DUPLEX_CUDNN in the environment names another library (tests/stand_in).
#pragma once
#include <memory>

#include "core/device.h"
#include "core/gpu/options.h"

namespace duplex {

/// Throws Error where the library was not built or is not found, and where there is no driver, no
/// GPU, or none of this number.
std::unique_ptr<Device> make_cuda_device(const GpuOptions& options = {});
/// Returns the number of GPUs that make_cuda_device() may take, from the first on up to one that
/// this program has no code for. Loads nothing where there is no driver, unless DUPLEX_CUDNN is
/// set.
int cuda_devices();
inline bool has_cuda_device() {
  return cuda_devices() > 0;
}

}  // namespace duplex
