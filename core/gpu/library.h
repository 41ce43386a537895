// The name of the library of the GPU's device, and what it exports. This header needs no CUDA.
#pragma once

namespace duplex {
class Device;
struct GpuOptions;
}  // namespace duplex

namespace duplex::cudnn {

constexpr const char* library_name = "duplex-cudnn.so";

/// Makes a device, which the caller owns. Throws Error where there is no driver, no GPU, or none of
/// this number.
using MakeDevice = Device*(const GpuOptions& options);
constexpr const char* make_device_name = "duplex_make_cudnn_device";
/// Returns the number of GPUs from the first on that this program may have code for; 0 also where
/// there is no driver.
using CountDevices = int();
constexpr const char* count_devices_name = "duplex_count_cudnn_devices";

}  // namespace duplex::cudnn
