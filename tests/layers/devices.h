// Makes the backends that tests of layers and models run on. A backend that this build lacks is
// skipped, and the test says so.
#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "core/gpu/cuda.h"
#include "core/reference/device.h"
#ifdef DUPLEX_ONEDNN
#include "core/onednn/device.h"
#endif

namespace duplex::test {

/// Returns a device of the backend, or null if that was not built in. Small networks have too
/// little to do for two threads: beside other programs these would wait for each other more than
/// work.
inline std::unique_ptr<Device> backend(const std::string& name, int threads = 1) {
  if (name == "reference") return make_reference_device();
  if (name == "cudnn") return make_cuda_device();
  if (name == "cudnn_nhwc") return make_cuda_device({0, Precision::float32, true});
#ifdef DUPLEX_ONEDNN
  if (name == "onednn") return make_onednn_device(threads);
#else
  (void)threads;
#endif
  return nullptr;
}

inline auto every_backend() {
  std::vector<const char*> names{"reference", "onednn"};
  if (has_cuda_device()) names.insert(names.end(), {"cudnn", "cudnn_nhwc"});
  return ::testing::ValuesIn(names);
}

/// Serves tests that run on each backend as their fixture; its parameter is the backend's name.
class OnEveryBackend : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    device = backend(GetParam());
    if (!device) GTEST_SKIP() << GetParam() << " is not built in";
  }

  std::unique_ptr<Device> device;
};

}  // namespace duplex::test
