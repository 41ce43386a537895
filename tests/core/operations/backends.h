// A test body runs on these backends. It skips one that this build lacks, with a message.
#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "core/device.h"

namespace duplex::test {

/// Returns every backend of the CPU, built in or not, and that of the GPU where there is one.
std::vector<std::string> backends();
/// Returns the backends that are compared with the reference.
std::vector<std::string> fast_backends();

/// Returns the same, and the backends that store activations in less than float32; same_results()
/// knows how far off these may be.
std::vector<std::string> rounding_backends();

/// Returns the name of a test's instance.
std::string backend_label(const ::testing::TestParamInfo<std::string>& backend);

/// Returns null where the backend was not built in.
std::unique_ptr<Device> make_backend(const std::string& name, int threads = 1);

/// The fixture of a test that runs on each backend.
class BackendTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override;

  std::unique_ptr<Device> device;
  int threads = 1;
};

/// The fixture of a test that compares a backend, with two threads, with the reference.
class ComparisonTest : public BackendTest {
 protected:
  void SetUp() override;

  std::unique_ptr<Device> reference;
};

/// Tensors on a device, with the memory behind them.
class Memory {
 public:
  explicit Memory(Device& device) : device_(device) {}

  /// Returns a tensor full of NaN, which shows what an operation ought to write and does not.
  Tensor poisoned(const TensorDesc& desc);
  Tensor holding(const TensorDesc& desc, const std::vector<float>& values);
  void poison(Tensor& tensor);
  std::vector<float> read(const Tensor& tensor);

 private:
  Device& device_;
  std::vector<Buffer> buffers_;
};

/// Returns the description that a convolution of this device gives to an activation of `shape` (N,
/// C, H, W).
TensorDesc convolved_desc(Device& device, const Shape& shape);

}  // namespace duplex::test
