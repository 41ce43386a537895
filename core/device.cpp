// Makes the devices that this build has, by their names.
#include "core/device.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <thread>

#include "core/device_name.h"
#include "core/error.h"
#include "core/gpu/cuda.h"
#include "core/reference/device.h"
#ifdef DUPLEX_ONEDNN
#include "core/onednn/device.h"
#endif

namespace duplex {
namespace {

std::unique_ptr<Device> make_cpu_device(int threads) {
#ifdef DUPLEX_ONEDNN
  return make_onednn_device(threads > 0 ? threads : usable_cores());
#else
  (void)threads;
  return make_reference_device();
#endif
}

}  // namespace

bool is_gpu(const std::string& which) {
  return which == "cuda" || which.rfind("cuda:", 0) == 0;
}

int gpu_of(const std::string& which) {
  const std::size_t colon = which.find(':');
  if (colon == std::string::npos) return 0;
  int index = 0;
  const char* const end = which.data() + which.size();
  const auto read = std::from_chars(which.data() + colon + 1, end, index);
  if (read.ec != std::errc() || read.ptr != end || index < 0)
    throw Error("device: '" + which + "' names no GPU; cuda:1 is the second", Exit::usage);
  return index;
}

int usable_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof cores, &cores) == 0) return std::max(CPU_COUNT(&cores), 1);
  return std::max(static_cast<int>(std::thread::hardware_concurrency()), 1);
}

void Device::convert(Tensor& to, const Tensor& from) {
  std::vector<float> values(static_cast<std::size_t>(from.shape().elements()));
  download(values.data(), from);
  upload(to, values.data());
}

std::unique_ptr<Device> make_device(const std::string& which, int threads, GpuOptions gpu) {
  if (threads < 0) {
    throw Error("device: " + std::to_string(threads) + " threads; 0 takes one for each core",
                Exit::usage);
  }
  if (is_gpu(which)) {
    gpu.index = gpu_of(which);
    gpu.threads = threads;
    return make_cuda_device(gpu);
  }
  if (gpu.precision != Precision::float32) {
    throw Error("device: " + which + " computes in float32; " + name_of(gpu.precision) +
                    " is for a GPU (--device cuda)",
                Exit::usage);
  }
  if (gpu.graphs)
    throw Error("device: " + which + " has no CUDA graphs; they are for a GPU (--device cuda)",
                Exit::usage);
  if (which == "auto" || which == "cpu") return make_cpu_device(threads);
  if (which == "reference") return make_reference_device();
  std::string known;
  for (const std::string& name : device_names()) known += (known.empty() ? "" : ", ") + name;
  throw Error("device: unknown '" + which + "'; known are " + known, Exit::usage);
}

std::vector<std::string> device_names() {
  return {"auto", "cpu", "cuda", "cuda:1", "reference"};
}

}  // namespace duplex
