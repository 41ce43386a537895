// Which devices there are in this build.
#include "core/device.h"

#include <sched.h>

#include <algorithm>
#include <thread>

#include "core/error.h"
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

std::unique_ptr<Device> make_device(const std::string& which, int threads) {
  if (threads < 0) {
    throw Error("device: " + std::to_string(threads) + " threads; 0 takes one for each core",
                Exit::usage);
  }
  if (which == "auto" || which == "cpu") return make_cpu_device(threads);
  if (which == "reference") return make_reference_device();
  std::string known;
  for (const std::string& name : device_names()) known += (known.empty() ? "" : ", ") + name;
  throw Error("device: unknown '" + which + "'; known are " + known, Exit::usage);
}

std::vector<std::string> device_names() {
  return {"auto", "cpu", "reference"};
}

}  // namespace duplex
