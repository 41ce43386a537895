// The way to the device of NVIDIA GPUs (core/cudnn). It is a library beside the program, opened
// only when it is asked for: CUDA's libraries take their time to load, and may be missing where the
// program runs. DUPLEX_CUDNN in the environment names another one (tests/stand_in).
#pragma once
#include <memory>

#include "core/device.h"
#include "core/gpu_options.h"

namespace duplex {

/// Throws Error: not built in or not found, no driver, no GPU, none of this number.
std::unique_ptr<Device> make_cuda_device(const GpuOptions& options = {});
/// Whether there is a GPU that make_cuda_device() would take. Costs nothing where there is no
/// driver.
bool has_cuda_device();

}  // namespace duplex
